package adloom;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
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
 * <p>The offset is that of the table's own source, and with it, while rows are held back, {@value #FRONTIER} and
 * {@value #HELD}: the offset after which the rows lie. Without a frontier it is the other source's to the letter, so a
 * checkpoint may change between them then.
 */
public class AlignedSource implements Source, SupportsAdmissionControl, SupportsTriggerAvailableNow {
  private static final String FRONTIER = "frontier_us", HELD = "held_from", TIME = "event_time";
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Source table;
  private final String path;

  AlignedSource(Source table, String path) {
    this.table = table;
    this.path = path;
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
    if (now == null || (known != null && !known.covers(now.version()))) {
      return start;
    }
    Position next = now.upTo(known, before);
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
    Option held = from.held == null ? (Option) None$.MODULE$ : new Some(new Plain(from.held.toString()));
    Dataset waiting = upTo(until.frontier, table.getBatch(held, from.inTable()));
    boolean isAnyRead = from.frontier != Alignments.NONE;
    return (isAnyRead ? waiting.where(TIME + " > " + literal(from.frontier)) : waiting).union(fresh);
  }

  private static Dataset upTo(long frontier, Dataset rows) {
    if (frontier == Alignments.ALL) {
      return rows;
    }
    return rows.where(frontier == Alignments.NONE ? "false" : TIME + " <= " + literal(frontier));
  }

  private static String literal(long micros) {
    return "timestamp_micros(" + micros + "L)";
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

  /** The end of a batch: the table's own offset, the frontier, and the offset after which rows are held back. */
  private static final class Position {
    final ObjectNode own;
    final long frontier;
    final JsonNode held;

    Position(String json) {
      own = read(json);
      JsonNode found = own.remove(FRONTIER);
      JsonNode from = own.remove(HELD);
      frontier = found == null ? Alignments.ALL : found.asLong();
      held = from == null || from.isNull() ? null : from;
    }

    private Position(ObjectNode own, long frontier, JsonNode held) {
      this.own = own;
      this.frontier = frontier;
      this.held = held;
    }

    /** The same version, read as far as is {@code known} by a batch that comes after {@code before}. */
    Position upTo(Alignments known, Position before) {
      if (before != null && before.frontier != Alignments.ALL) {
        long next = known == null ? Alignments.ALL : known.after(before.frontier);
        return new Position(own, next, before.held);
      }
      boolean isNew = before == null || !own.equals(before.own);
      return known == null || !isNew ? this : new Position(own, known.last(), before == null ? null : before.own);
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
      return new Plain(all.toString());
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
