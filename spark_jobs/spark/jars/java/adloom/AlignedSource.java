package adloom;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.SupportsAdmissionControl;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.apache.spark.sql.execution.streaming.Offset;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.types.StructType;
import scala.None$;
import scala.Option;
import scala.Some;

/**
 * A stream of a table in the order of its versions that holds back the rows after a frontier of event time.
 *
 * <p>Where a batch ends is a version and a frontier: it has read all rows up to both. The next one reads the rows of newer
 * versions up to its own frontier, and those of the versions before between the two frontiers:
 *
 * <pre>
 *   event time
 *   frontier 2 ┤▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓   batch 2 reads ▓
 *   frontier 1 ┤░░░░░░░░░░░▓▓▓▓▓▓▓▓   batch 1 has read ░
 *              └───────────┬───────┬─ version
 * </pre>
 *
 * <p>A stream of a table that has rows already begins with them as they lie at rest, whatever their versions were, and
 * takes them in steps of event time: its first frontiers. A batch ends with a whole version, because within one rows lie
 * in no order of time.
 *
 * <p>The offset is that of the table's own source, and with it, while rows are held back, {@value #FRONTIER},
 * {@value #HELD}: the offset after which the rows lie, and {@value #REST}: the offset after the rows that lay at rest.
 * Without a frontier it is the other source's to the letter, so a checkpoint may change between them then.
 */
public class AlignedSource implements Source, SupportsAdmissionControl, SupportsTriggerAvailableNow {
  private static final String FRONTIER = "frontier_us", HELD = "held_from", REST = "at_rest_until";
  private static final String TIME = "event_time", DATE = "event_date";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Source table;
  private final String path;
  private final Alignments steps;

  /**
   * @param steps the way through the rows that the table has already, as for {@link Alignments#publish}; null: one step
   */
  AlignedSource(Source table, String path, String steps) {
    this.table = table;
    this.path = path;
    this.steps = steps == null ? null : new Alignments(Long.MAX_VALUE, steps);
  }

  @Override
  public StructType schema() {
    return table.schema();
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset latestOffset(
      org.apache.spark.sql.connector.read.streaming.Offset start, ReadLimit limit) {
    Position before = start == null ? null : new Position(start.json());
    // In this order: what is published afterwards covers more.
    Alignments known = Alignments.of(path);
    org.apache.spark.sql.connector.read.streaming.Offset found =
        ((SupportsAdmissionControl) table).latestOffset(before == null ? null : before.inTable(), limit);
    Position now = found == null ? before : new Position(found.json());
    if (now == null) {
      return start;
    }
    now = now.toEndOfVersion();
    if (known != null && !known.covers(now.version())) {
      return start;
    }
    Position next = now.upTo(known == null ? steps : known, before);
    return before != null && next.isAt(before) ? start : next.asOffset();
  }

  @Override
  public Dataset getBatch(Option start, Offset end) {
    Position until = new Position(end.json());
    if (start.isEmpty()) {
      return upTo(until.frontier, table.getBatch(start, until.inTable()));
    }
    Position from = new Position(((org.apache.spark.sql.connector.read.streaming.Offset) start.get()).json());
    Dataset fresh = upTo(until.frontier, table.getBatch(new Some(from.inTable()), until.inTable()));
    if (from.frontier == Alignments.ALL) {
      return fresh;
    }
    return between(from.frontier, until.frontier, waiting(from)).union(fresh);
  }

  /** The rows of the versions of {@code from} that may be held back. */
  private Dataset waiting(Position from) {
    if (from.held != null) {
      return table.getBatch(new Some(new Plain(from.held.toString())), from.inTable());
    }
    Option none = None$.MODULE$;
    if (from.rest == null || from.rest.equals(from.own)) {
      return table.getBatch(none, from.inTable());
    }
    Offset rest = new Plain(from.rest.toString());
    return table.getBatch(none, rest).union(table.getBatch(new Some(rest), from.inTable()));
  }

  private static Dataset between(long after, long until, Dataset rows) {
    if (after == Alignments.NONE) {
      return upTo(until, rows);
    }
    Dataset later = rows.where(TIME + " > timestamp_micros(" + after + "L)");
    return upTo(until, hasDates(rows) ? later.where(DATE + " >= " + date(after)) : later);
  }

  private static Dataset upTo(long frontier, Dataset rows) {
    if (frontier == Alignments.ALL) {
      return rows;
    }
    if (frontier == Alignments.NONE) {
      return rows.where("false");
    }
    Dataset earlier = rows.where(TIME + " <= timestamp_micros(" + frontier + "L)");
    return hasDates(rows) ? earlier.where(DATE + " <= " + date(frontier)) : earlier;
  }

  /** Whether rows lie in partitions by date, which need not be opened where the time excludes them. */
  private static boolean hasDates(Dataset rows) {
    return Arrays.asList(rows.columns()).contains(DATE);
  }

  private static String date(long micros) {
    return "date_from_unix_date(" + Math.floorDiv(micros, 86_400_000_000L) + ")";
  }

  @Override
  public Option getOffset() {
    throw new UnsupportedOperationException("it is asked for the latest offset");
  }

  @Override
  public void commit(Offset end) {
    table.commit(new Position(end.json()).inTable());
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    return ((SupportsAdmissionControl) table).getDefaultReadLimit();
  }

  @Override
  public org.apache.spark.sql.connector.read.streaming.Offset reportLatestOffset() {
    return ((SupportsAdmissionControl) table).reportLatestOffset();
  }

  @Override
  public void prepareForTriggerAvailableNow() {
    ((SupportsTriggerAvailableNow) table).prepareForTriggerAvailableNow();
  }

  @Override
  public void stop() {
    table.stop();
  }

  @Override
  public String toString() {
    return table.toString();
  }

  /** The end of a batch: the table's own offset, the frontier, and the offsets between which rows are held back. */
  private static final class Position {
    final ObjectNode own;
    final long frontier;
    final JsonNode held;
    final JsonNode rest;

    Position(String json) {
      own = read(json);
      JsonNode found = own.remove(FRONTIER);
      frontier = found == null ? Alignments.ALL : found.asLong();
      held = value(own.remove(HELD));
      rest = value(own.remove(REST));
    }

    private Position(ObjectNode own, long frontier, JsonNode held, JsonNode rest) {
      this.own = own;
      this.frontier = frontier;
      this.held = held;
      this.rest = rest;
    }

    /** The same version, whole: the table's own source may end within it when a batch is full. */
    Position toEndOfVersion() {
      if (own.get("index").asLong() < 0) {
        return this;
      }
      ObjectNode next = own.deepCopy();
      next.put("reservoirVersion", own.get("reservoirVersion").asLong() + 1);
      next.put("index", -1);
      next.put("isStartingVersion", false);
      return new Position(next, frontier, held, rest);
    }

    /** The same version, read as far as is {@code known} by a batch that comes after {@code before}. */
    Position upTo(Alignments known, Position before) {
      if (before != null && before.frontier != Alignments.ALL) {
        long next = known == null ? Alignments.ALL : known.after(before.frontier);
        return new Position(own, next, before.held, before.rest);
      }
      if (known == null || (before != null && own.equals(before.own))) {
        return this;
      }
      return before == null
          ? new Position(own, known.first(), null, own)
          : new Position(own, known.last(), before.own, null);
    }

    boolean isAt(Position other) {
      return own.equals(other.own) && frontier == other.frontier;
    }

    /** The last version that the batch has read. */
    long version() {
      long version = own.get("reservoirVersion").asLong();
      return own.get("index").asLong() < 0 ? version - 1 : version;
    }

    Offset inTable() {
      return new Plain(own.toString());
    }

    Offset asOffset() {
      if (frontier == Alignments.ALL) {
        return inTable();
      }
      ObjectNode all = own.deepCopy();
      all.put(FRONTIER, frontier);
      all.set(HELD, held);
      if (rest != null) {
        all.set(REST, rest);
      }
      return new Plain(all.toString());
    }

    private static JsonNode value(JsonNode found) {
      return found == null || found.isNull() ? null : found;
    }

    private static ObjectNode read(String json) {
      try {
        return (ObjectNode) JSON.readTree(json);
      } catch (JsonProcessingException error) {
        throw new IllegalArgumentException("not an offset: " + json, error);
      }
    }
  }

  private static final class Plain extends Offset {
    private final String json;

    Plain(String json) {
      this.json = json;
    }

    @Override
    public String json() {
      return json;
    }
  }
}
