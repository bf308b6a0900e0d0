package adloom;

import java.util.Arrays;
import java.util.concurrent.ConcurrentHashMap;

/**
 * By table, how far its streams may read: the driver decides it after each batch that it writes to the table.
 *
 * <p>A table that nobody aligns is read as it comes.
 */
public final class Alignments {
  /** A frontier behind every event, and one ahead of every event, which holds nothing back. */
  public static final long NONE = Long.MIN_VALUE, ALL = Long.MAX_VALUE;

  private static final ConcurrentHashMap TABLES = new ConcurrentHashMap();

  private final long version;
  private final long[] frontiers;
  private volatile boolean isOvertaken;

  /** See {@link #publish}. */
  Alignments(long version, String frontiers) {
    String[] texts = frontiers.split(",");
    this.version = version;
    this.frontiers = new long[texts.length];
    for (int i = 0; i < texts.length; i++) {
      this.frontiers[i] = Long.parseLong(texts[i]);
    }
  }

  /**
   * Lets streams of a table read its rows up to a frontier.
   *
   * @param version of the table; later ones have not been looked at and wait
   * @param frontiers the way to the frontier in event time (microseconds since 1970), with commas; a batch takes a step
   */
  public static void publish(String table, long version, String frontiers) {
    TABLES.put(table, new Alignments(version, frontiers));
  }

  /** Streams of the table read it as it comes from now on. */
  public static void forget(String table) {
    TABLES.remove(table);
  }

  /** Whether a stream waits for a version that has not been looked at. */
  public static boolean isOvertaken(String table) {
    Alignments found = of(table);
    return found != null && found.isOvertaken;
  }

  static Alignments of(String table) {
    return (Alignments) TABLES.get(table);
  }

  boolean covers(long other) {
    isOvertaken = isOvertaken || other > version;
    return other <= version;
  }

  long first() {
    return frontiers[0];
  }

  long last() {
    return frontiers[frontiers.length - 1];
  }

  /** The step after {@code frontier}. */
  long after(long frontier) {
    for (int i = 0; i < frontiers.length; i++) {
      if (frontiers[i] > frontier) {
        return frontiers[i];
      }
    }
    return Math.max(frontier, last());
  }

  @Override
  public String toString() {
    return "version " + version + ", frontiers " + Arrays.toString(frontiers);
  }
}
