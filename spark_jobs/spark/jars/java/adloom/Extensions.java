package adloom;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.streaming.operators.stateful.StreamingDeduplicateWithinWatermarkExec;
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/** What adloom changes in Spark's plans, for spark.sql.extensions: deduplication forgets in steps. */
public class Extensions extends AbstractFunction1 {
  /** Takes Spark's SparkSessionExtensions. */
  @Override
  public Object apply(Object extensions) {
    ((SparkSessionExtensions) extensions).injectColumnar(new Rules());
    return BoxedUnit.UNIT;
  }

  private static final class Rules extends AbstractFunction1 {
    @Override
    public Object apply(Object session) {
      return new AfterWatermarks();
    }
  }

  /** Rules for columns are the first that see the plan of a batch with its watermarks. */
  private static final class AfterWatermarks extends ColumnarRule {
    @Override
    public Rule preColumnarTransitions() {
      return new ForgetInSteps();
    }
  }

  private static final class ForgetInSteps extends Rule {
    @Override
    public TreeNode apply(TreeNode plan) {
      return ((SparkPlan) plan).transformUp(new Replacement());
    }
  }

  private static final class Replacement extends AbstractPartialFunction {
    @Override
    public boolean isDefinedAt(Object node) {
      return node instanceof StreamingDeduplicateWithinWatermarkExec && !(node instanceof StepwiseDeduplicateExec);
    }

    @Override
    public Object applyOrElse(Object node, Function1 otherwise) {
      if (!isDefinedAt(node)) {
        return otherwise.apply(node);
      }
      StreamingDeduplicateWithinWatermarkExec found = (StreamingDeduplicateWithinWatermarkExec) node;
      return new StepwiseDeduplicateExec(
          found.keyExpressions(),
          found.child(),
          found.stateInfo(),
          found.eventTimeWatermarkForLateEvents(),
          found.eventTimeWatermarkForEviction());
    }
  }
}
