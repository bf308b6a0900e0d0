package adloom;

import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateWithinWatermarkExec;
import org.apache.spark.sql.execution.streaming.state.StateStore;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Spark's deduplication within a watermark, which forgets in steps of event time instead of in every batch.
 *
 * <p>To forget, Spark scans all keys that it remembers. With a batch every two seconds and hours of keys, that soon takes
 * longer than everything else in a batch. Here it scans when the watermark enters another step, a {@value #STEPS}th of
 * its delay. Which batch that is depends on watermarks alone, so that a batch that is repeated does the same. A key is
 * remembered for up to a step longer; what expires and what is late is as in Spark.
 */
public class StepwiseDeduplicateExec extends StreamingDeduplicateWithinWatermarkExec {
  private static final int STEPS = 64;
  private static final String DELAY_MS = "spark.watermarkDelayMs";

  private final long stepMs;

  public StepwiseDeduplicateExec(
      Seq keys, SparkPlan child, Option state, Option watermarkForLate, Option watermarkForEviction) {
    super(keys, child, state, watermarkForLate, watermarkForEviction);
    stepMs = Math.max(1, delayMs(child) / STEPS);
  }

  @Override
  public void evictDupInfoFromState(StateStore store) {
    if (step(eventTimeWatermarkForLateEvents()) != step(eventTimeWatermarkForEviction())) {
      super.evictDupInfoFromState(store);
    }
  }

  @Override
  public StreamingDeduplicateWithinWatermarkExec withNewChildInternal(SparkPlan child) {
    return new StepwiseDeduplicateExec(
        keyExpressions(), child, stateInfo(), eventTimeWatermarkForLateEvents(), eventTimeWatermarkForEviction());
  }

  /** A plan that only differs by equal nodes is not changed, so this must not equal Spark's own. */
  @Override
  public boolean equals(Object other) {
    return other instanceof StepwiseDeduplicateExec && super.equals(other);
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof StepwiseDeduplicateExec;
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  private long step(Option watermarkMs) {
    return watermarkMs.isEmpty() ? 0 : ((Long) watermarkMs.get()).longValue() / stepMs;
  }

  private static long delayMs(SparkPlan child) {
    for (Iterator columns = child.output().iterator(); columns.hasNext(); ) {
      Attribute column = (Attribute) columns.next();
      if (column.metadata().contains(DELAY_MS)) {
        return column.metadata().getLong(DELAY_MS);
      }
    }
    return 0;
  }
}
