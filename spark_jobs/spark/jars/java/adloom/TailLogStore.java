package adloom;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.Invoker;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.util.functional.CallableRaisingIOE;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Response;
import software.amazon.awssdk.services.s3.model.S3Object;

/**
 * Lists the end of a table's log in an object store, instead of all of it.
 *
 * <p>Delta lists the log several times for each batch. Its own store asks for every file and drops those before the last
 * checkpoint, so that batches take longer from day to day: a commit every 5 s leaves a million files in 30 days, a
 * thousand pages. An object store lists in the order of names, so here it is told where to begin. Delta's own switch for
 * this, delta.enableFastS3AListFrom, calls a method that Hadoop 3.5 no longer has.
 *
 * <p>Requests are repeated as Hadoop repeats its own, by fs.s3a.retry.limit and the like: a store that is away for some
 * seconds ends no job.
 */
public class TailLogStore extends S3SingleDriverLogStore {
  public TailLogStore(Configuration configuration) {
    super(configuration);
  }

  /** The files in the log from the name of {@code path} on, in the order of their names. */
  @Override
  public Iterator listFrom(Path path, Configuration configuration) throws IOException {
    FileSystem found = path.getFileSystem(configuration);
    // VACUUM lists folders of data by the same method, and needs the folders in them.
    if (!(found instanceof S3AFileSystem) || !path.getParent().getName().equals("_delta_log")) {
      return super.listFrom(path, configuration);
    }
    S3AFileSystem files = (S3AFileSystem) found;
    Path log = files.makeQualified(path.getParent());
    List statuses = list(files, log, path.getName());
    // An empty end of a log and no log at all look the same; Delta tells them apart.
    return statuses.isEmpty() ? super.listFrom(path, configuration) : statuses.iterator();
  }

  private static List list(S3AFileSystem files, Path log, String first) throws IOException {
    S3Client client = files.getS3AInternals().getAmazonS3Client("list the end of a log");
    Invoker invoker = files.createStoreContext().getInvoker();
    String folder = files.pathToKey(log) + "/";
    // What is asked for comes after this name, and the first name must be among it.
    String before = folder + first.substring(0, first.length() - 1);
    long block = files.getDefaultBlockSize(log);
    List statuses = new ArrayList();
    String next = null;
    do {
      ListObjectsV2Request.Builder request = ListObjectsV2Request.builder();
      request.bucket(files.getBucket()).prefix(folder).delimiter("/").startAfter(before);
      if (next != null) {
        request.continuationToken(next);
      }
      Page page = new Page(client, (ListObjectsV2Request) request.build());
      ListObjectsV2Response answer = (ListObjectsV2Response) invoker.retry("list", log.toString(), true, page);
      Iterator objects = answer.contents().iterator();
      while (objects.hasNext()) {
        S3Object object = (S3Object) objects.next();
        String name = object.key().substring(folder.length());
        if (name.compareTo(first) >= 0) {
          long modified = object.lastModified().toEpochMilli();
          statuses.add(new FileStatus(object.size().longValue(), false, 1, block, modified, new Path(log, name)));
        }
      }
      next = Boolean.TRUE.equals(answer.isTruncated()) ? answer.nextContinuationToken() : null;
    } while (next != null);
    return statuses;
  }

  /** A page of the listing, asked for as often as it takes. */
  private static class Page implements CallableRaisingIOE {
    private final S3Client client;
    private final ListObjectsV2Request request;

    Page(S3Client client, ListObjectsV2Request request) {
      this.client = client;
      this.request = request;
    }

    @Override
    public Object apply() {
      return client.listObjectsV2(request);
    }
  }
}
