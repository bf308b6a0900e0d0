package adloom;

import org.apache.spark.sql.SQLContext;
import org.apache.spark.sql.delta.sources.DeltaDataSource;
import org.apache.spark.sql.execution.streaming.Source;
import org.apache.spark.sql.sources.StreamSourceProvider;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;

/** A Delta table as a stream that holds back what is ahead: Delta's own source within an AlignedSource. */
public class AlignedDelta implements StreamSourceProvider {
  @Override
  public Tuple2 sourceSchema(SQLContext context, Option schema, String name, Map options) {
    return new DeltaDataSource().sourceSchema(context, schema, name, options);
  }

  @Override
  public Source createSource(SQLContext context, String checkpoint, Option schema, String name, Map options) {
    Source table = new DeltaDataSource().createSource(context, checkpoint, schema, name, options);
    String steps = options.contains("steps") ? (String) options.apply("steps") : null;
    return new AlignedSource(table, (String) options.apply("path"), steps);
  }
}
