"""The environment variables that adloom and what surrounds it read; those of settings follow from the settings.

A test looks for variables that are read somewhere and not declared here, and for declared ones that nobody reads.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """An environment variable: its name, its default as people would say it, and its meaning."""

    name: str
    default: str
    meaning: str


@dataclass(frozen=True)
class Group:
    """Variables that the same program reads."""

    title: str
    remark: str
    variables: tuple[Variable, ...]


COMMAND = Group(
    "The command adloom and the jobs",
    "Every [setting](settings.md) also has a variable: `ADLOOM_<SECTION>__<SETTING>`, with two underscores, "
    "as in `ADLOOM_SESSIONIZE__GAP=10min`. A secret can be in a file instead, which is read at each start: "
    "`ADLOOM_KAFKA__PASSWORD_FILE` names that of `ADLOOM_KAFKA__PASSWORD`, and so with each setting and with "
    "`ADLOOM_AIRFLOW_TOKEN`, `ADLOOM_SUPERVISOR_PASSWORD`, `ADLOOM_ALERT_URL` and `ADLOOM_RELEASE_PUBLIC_KEY`.",
    (
        Variable("ADLOOM_LAKE", "", "root of the lake, instead of `--lake`"),
        Variable("ADLOOM_CONFIG", "", "TOML file with settings, instead of `--config`; a release takes it along"),
        Variable("ADLOOM_AIRFLOW", "", "address of Airflow for `adloom missed-days`, instead of `--airflow`"),
        Variable("ADLOOM_AIRFLOW_TOKEN", "", "token of Airflow's REST API, for `adloom missed-days`"),
        Variable("AWS_ACCESS_KEY_ID", "", "key of the object store, unless `s3.profile` names an AWS profile"),
        Variable("AWS_SECRET_ACCESS_KEY", "", "its secret"),
        Variable("AWS_SESSION_TOKEN", "", "the token that belongs to them, if they are temporary"),
        Variable(
            "AWS_SHARED_CREDENTIALS_FILE",
            "~/.aws/credentials",
            "file with the keys of AWS profiles; `adloom init --user` writes to it",
        ),
        Variable("AWS_CONFIG_FILE", "~/.aws/config", "file that says how AWS profiles get keys that expire"),
        Variable("AWS_PROFILE", "", "AWS profile; adloom sets it from `s3.profile` for the Java process"),
        Variable(
            "AWS_EC2_METADATA_DISABLED", "", "AWS SDK: `true` keeps it from asking for the keys of an EC2 machine"
        ),
        Variable(
            "ADLOOM_RELEASE_KEY",
            "",
            "where releases are built: file of the private key that signs them ([security](security.md#releases))",
        ),
        Variable(
            "ADLOOM_RELEASE_PUBLIC_KEY",
            "releases are not checked",
            "where releases are run: public key; without its signature a release is refused. Several with commas",
        ),
        Variable("JAVA_HOME", "java on the PATH", "the Java 17 or 21 to use"),
        Variable("ADLOOM_MAVEN_URL", "Maven Central", "address that the jars are fetched from, e.g. a mirror"),
        Variable(
            "ADLOOM_CACHE",
            "~/.cache/adloom",
            "folder for the jars, and for the downloads of `make setup`, of the tests and of the benchmarks",
        ),
        Variable(
            "SPARK_LOCAL_DIRS",
            "the folder for temporary files",
            "where state and shuffle files go, the first folder of the list; each process makes a subfolder of its own",
        ),
        Variable(
            "SPARK_LOCAL_IP",
            "127.0.0.1 with a local master",
            "address that Spark binds; without it Spark would listen on the machine's outer address",
        ),
        Variable("XDG_CACHE_HOME", "~/.cache", "releases are unpacked below it"),
        Variable(
            "XDG_RUNTIME_DIR",
            "the folder for temporary files",
            "sockets, locks and logs of the Java that commands share (`spark.keep_java`) are in a folder below it",
        ),
        Variable("HADOOP_CONF_DIR", "", "configuration of Hadoop, for `adloom submit --master yarn`"),
        Variable("PYSPARK_PYTHON", "", "set by adloom for Spark: its own interpreter runs the Python state functions"),
        Variable("PYSPARK_DRIVER_PYTHON", "", "the same, for the driver"),
        Variable(
            "PYSPARK_GATEWAY_PORT", "", "set by spark-submit; adloom then uses the Java process that is already there"
        ),
        Variable("PYSPARK_GATEWAY_SECRET", "", "the same; set by adloom, for a moment, when it joins a shared Java"),
        Variable(
            "OPENLINEAGE_PARENT_ID",
            "",
            "`NAMESPACE/JOB/RUN_ID` of the run that `adloom lineage` is a part of, as Airflow's macro "
            "`lineage_parent_id` gives it",
        ),
        Variable("SPARK_HOME", "", "set by `adloom submit` and in the images: the Spark in the Python packages"),
    ),
)
AIRFLOW = Group(
    "Airflow's processes",
    "Besides Airflow's own variables, `AIRFLOW__<SECTION>__<KEY>`. Commands that tasks start get the variables "
    "that begin with `ADLOOM_`, `AWS_`, `SPARK_`, `JAVA_`, `HADOOP_` or `YARN_` and a few of the system's, but not the "
    "passwords of Airflow and the supervisor. Most can come from a "
    "[connection](airflow.md#a-connection-instead-of-variables) instead.",
    (
        Variable(
            "ADLOOM_CONNECTION",
            "",
            "Airflow connection of the type `adloom` that describes lake, store, settings and launcher; what it has "
            "precedes the other variables",
        ),
        Variable(
            "ADLOOM_LAKES",
            "one, without a prefix",
            "the lakes of this Airflow, as in `eu_=adloom_eu,us_=adloom_us`: the prefix of a lake's DAGs and assets, "
            "and its connection ([Airflow](airflow.md#several-lakes))",
        ),
        Variable("ADLOOM_SUPERVISOR_ADDRESS", "", "host:port of the supervisord that runs the drivers"),
        Variable("ADLOOM_SUPERVISOR_PASSWORD", "", "its password"),
        Variable(
            "ADLOOM_CHECKOUT", "the checkout that holds the DAGs", "folder that `deploy_streams` builds releases from"
        ),
        Variable("ADLOOM_COMMAND", "`adloom` next to Airflow's Python", "path of the command adloom"),
        Variable("ADLOOM_JOBS", "all", "comma-separated jobs that are deployed together"),
        Variable("ADLOOM_ALERT_URL", "", "http(s) address that receives a JSON message when a task fails"),
        Variable(
            "ADLOOM_POOL",
            "default_pool; `adloom` in `make airflow` and in containers",
            "pool of the tasks that start Spark; it must exist",
        ),
        Variable("ADLOOM_DAG_OWNER", "adloom", "owner of all tasks"),
        Variable("ADLOOM_DAG_TAGS", "", "comma-separated tags of all DAGs, besides their own"),
        Variable(
            "ADLOOM_MAINTENANCE_PROFILE",
            "",
            "AWS profile for the tasks that change tables or checkpoints, if Airflow's own keys may only read the lake",
        ),
        Variable(
            "ADLOOM_BACKUP",
            "",
            "where `back_up_lake` copies the lake to: a folder or s3a://bucket/prefix; without it, it is skipped",
        ),
        Variable("ADLOOM_SOURCE", "", "folder of files that `deduplicate` watches; without it, Kafka"),
        Variable("ADLOOM_CLUSTER", "", "`yarn` or `k8s://https://host:port`: the cluster that runs the drivers"),
        Variable("ADLOOM_YARN_ADDRESS", "", "REST address of YARN's ResourceManager, e.g. `http://host:8088`"),
        Variable("ADLOOM_KUBERNETES_NAMESPACE", "default", "namespace of the drivers' pods"),
        Variable(
            "ADLOOM_KUBERNETES_ACCOUNT",
            "that of Airflow's own pod",
            "folder with `token` and `ca.crt` of a service account",
        ),
        Variable("ADLOOM_SUBMIT_PROPERTIES", "", "file of Spark properties for `adloom submit`: image, account, queue"),
    ),
)
DRIVERS = Group(
    "supervisord of the drivers",
    "`make airflow` and the image set all of them; see "
    "[infra/supervisor/drivers.conf](../infra/supervisor/drivers.conf). It also reads `ADLOOM_LAKE`, `ADLOOM_COMMAND`, "
    "`ADLOOM_SUPERVISOR_ADDRESS` and `ADLOOM_SUPERVISOR_PASSWORD`.",
    (
        Variable("ADLOOM_SUPERVISOR_PASSWORD_FILE", "", "in the image: file of the password, read at the start"),
        Variable("ADLOOM_DRIVERS", "", "folder for the drivers' logs and supervisord's pid file"),
        Variable("ADLOOM_DRIVER_OPTIONS", "", "more options for every driver, e.g. `--config adloom.toml`"),
        Variable("ADLOOM_METRICS_DEDUPLICATE", "", "host:port of the metrics of the job `deduplicate`"),
        Variable("ADLOOM_METRICS_ATTRIBUTE", "", "host:port of the metrics of the job `attribute`"),
        Variable("ADLOOM_METRICS_MEASURE", "", "host:port of the metrics of the job `measure`"),
    ),
)
EMBEDDED = Group(
    "make airflow",
    "",
    (
        Variable("ADLOOM_HOME", ".airflow", "folder for Airflow's database, logs and secrets"),
        Variable("ADLOOM_AIRFLOW_PORT", "8080", "port of Airflow's pages, on 127.0.0.1"),
        Variable("ADLOOM_EXECUTION_PORT", "8081", "port that tasks talk to, on 127.0.0.1"),
        Variable("ADLOOM_BIN", "", "set for supervisord: folder of the commands"),
        Variable("AIRFLOW_HOME", "", "set to `ADLOOM_HOME`"),
        Variable(
            "PYTHONPATH", "", "set so that Airflow finds the DAGs' own modules; what is there already comes after"
        ),
    ),
)
CONTAINERS = Group(
    "Containers: .env",
    "`make up` writes the secrets and ports; the others can be added. Compose does not start while a secret is unset. "
    "For [your own Kafka and object store](containers.md#your-own-kafka-and-object-store), Compose passes these on to "
    "the containers: `ADLOOM_LAKE`, `ADLOOM_KAFKA__BOOTSTRAP_SERVERS`, `…SECURITY_PROTOCOL`, `…SASL_MECHANISM`, "
    "`…USERNAME`, `…PASSWORD`, `…CA_FILE` and `…OPTIONS`, `ADLOOM_S3__ENDPOINT`, `…REGION`, `…PATH_STYLE` and "
    "`…CA_FILE`, and `ADLOOM_REGISTRY__URL`, `…USERNAME`, `…PASSWORD` and `…CA_FILE`.",
    (
        Variable("MINIO_ROOT_PASSWORD", "random", "password of MinIO's administrator, `adloom-root`"),
        Variable("KAFKA_ADMIN_PASSWORD", "random", "password of the Kafka user `admin`: topics and rights"),
        Variable("KAFKA_JOBS_PASSWORD", "random", "password of the Kafka user `jobs`, who may read topics"),
        Variable("KAFKA_SENDER_PASSWORD", "random", "password of the Kafka user `sender`, who may write"),
        Variable("POSTGRES_PASSWORD", "random", "password of Airflow's database"),
        Variable("SPARK_SECRET", "random", "shared secret of Spark's master, workers and drivers"),
        Variable("SUPERVISOR_PASSWORD", "random", "password of the drivers' supervisord"),
        Variable("AIRFLOW_ADMIN_PASSWORD", "random", "password of the Airflow user `admin`"),
        Variable("AIRFLOW_VIEWER_PASSWORD", "random", "password of the Airflow user `viewer`"),
        Variable("AIRFLOW_FERNET_KEY", "random", "key that encrypts what Airflow stores"),
        Variable("AIRFLOW_JWT_SECRET", "random", "secret that signs the tokens of tasks"),
        Variable("AIRFLOW_API_SECRET", "random", "secret of Airflow's web sessions"),
        Variable(
            "GRAFANA_ADMIN_PASSWORD",
            "random",
            "password of the Grafana user `admin`, with the profile `grafana`; it counts when its volume is created",
        ),
        Variable("AIRFLOW_PORT", "8080", "port of Airflow on 127.0.0.1"),
        Variable("KAFKA_PORT", "9094", "port of Kafka on 127.0.0.1"),
        Variable("MINIO_PORT", "9000", "port of MinIO on 127.0.0.1"),
        Variable("MINIO_CONSOLE_PORT", "9001", "port of MinIO's console on 127.0.0.1"),
        Variable("PROMETHEUS_PORT", "9090", "port of Prometheus on 127.0.0.1"),
        Variable("GRAFANA_PORT", "3000", "port of Grafana on 127.0.0.1, with the profile `grafana`"),
        Variable(
            "COMPOSE_PROFILES",
            "kafka,minio",
            "the bundled services to start besides the rest; without one of them, name your own",
        ),
        Variable("CA_FOLDER", "./infra/compose/ca", "folder that the containers see as `/etc/ca`, for certificates"),
        Variable("S3_JOBS_ACCESS_KEY_ID", "", "your own store: key of the jobs, which may change the lake"),
        Variable("S3_JOBS_SECRET_ACCESS_KEY", "", "its secret"),
        Variable(
            "S3_AIRFLOW_ACCESS_KEY_ID",
            "that of the jobs",
            "your own store: key of Airflow's tasks, with fewer rights (`adloom init --role airflow`)",
        ),
        Variable("S3_AIRFLOW_SECRET_ACCESS_KEY", "", "its secret"),
        Variable(
            "S3_PAGES_ACCESS_KEY_ID",
            "that of Airflow's tasks",
            "your own store: key of Airflow's pages and the exporter, which read no row (`adloom init --role pages`)",
        ),
        Variable("S3_PAGES_SECRET_ACCESS_KEY", "", "its secret"),
        Variable("OWN_KAFKA", "", "set by the Compose file for `init`: `yes` if Kafka is your own"),
        Variable("OWN_STORE", "", "set by the Compose file for `init`: `yes` if the store is your own"),
        Variable("SPARK_WORKERS", "1", "number of worker containers"),
        Variable("WORKER_CORES", "6", "cores that each worker offers"),
        Variable("WORKER_MEMORY", "4g", "memory that each worker offers"),
        Variable("WORKER_LIMIT", "7g", "memory limit of each worker container"),
        Variable("DRIVERS_LIMIT", "7g", "memory limit of the container of the drivers"),
        Variable("MAX_CORES", "2", "cores that each job takes on the cluster"),
        Variable("TOPIC_PARTITIONS", "4", "partitions of a topic that has to be created"),
        Variable("ADLOOM_TOML", "./infra/compose/adloom.toml", "settings of the jobs"),
        Variable("ALERT_URL", "", "becomes `ADLOOM_ALERT_URL` of Airflow"),
        Variable("ALERTS_WEBHOOK_URL", "", "address that Alertmanager posts its alerts to"),
        Variable("ALERTS_SLACK_URL", "", "incoming webhook of Slack, or of a chat that takes the same"),
        Variable("ALERTS_SLACK_CHANNEL", "", "channel there; empty: that of the webhook"),
        Variable("ALERTS_EMAIL_TO", "", "addresses that alerts are mailed to; needs the next two"),
        Variable("ALERTS_EMAIL_FROM", "", "sender of the mails"),
        Variable("ALERTS_SMTP_HOST", "", "mail server, as in mail.example.com:587"),
        Variable("ALERTS_SMTP_USER", "", "user there; empty: no login"),
        Variable("ALERTS_SMTP_PASSWORD", "", "its password"),
        Variable("ALERTS_SMTP_TLS", "true", "whether the mail server must offer STARTTLS"),
        Variable("ALERTS_GROUP_WAIT", "30s", "how long Alertmanager waits to send alerts of one kind together"),
        Variable("ALERTS_GROUP_INTERVAL", "5m", "how long until it reports that such a group has changed or is over"),
        Variable(
            "ADLOOM_DOCS_URL", "`docs`", "where these docs are, for the links in alerts: https://…, without runbook.md"
        ),
        Variable("ALERTS_REPEAT", "4h", "how long until it repeats an alert that goes on"),
        Variable("ALERTS_FOLDER", "`alertmanager` in `/tmp`", "folder for its configuration, with these secrets"),
        Variable("ALERTMANAGER", "alertmanager", "the program that `infra/alertmanager/start.sh` starts"),
        Variable("GENERATOR_EVENTS", "100000000", "events that the generator sends"),
        Variable("GENERATOR_RATE", "200", "events per second that it sends"),
        Variable("GENERATOR_SEED", "7", "its seed"),
        Variable("SPARK_IMAGE", "adloom-spark:local", "image of the jobs"),
        Variable("AIRFLOW_IMAGE", "adloom-airflow:local", "image of Airflow"),
        Variable("COMPOSE_PROJECT_NAME", "adloom", "name of the Compose project"),
        Variable("COMPOSE_ENV_FILES", ".env", "the file that `make up` writes and Compose reads"),
        Variable("CERTIFICATES", "infra/compose/certificates", "folder of the certificates, with TLS"),
        Variable("DAYS", "825", "how many days new certificates are valid"),
        Variable("UP_TIMEOUT", "600", "seconds that `make up` waits for healthy containers"),
    ),
)
DEVELOPMENT = Group(
    "Setup, tests and benchmarks",
    "",
    (
        Variable("PYTHON", "a Python 3.11 to 3.13 on the PATH", "interpreter for `make setup`"),
        Variable(
            "KILLS", "1; 50 in `make test-stack-full`; 5 in `make test-airflow-full`", "how often tests kill a process"
        ),
        Variable("ROUNDS", "5", "how many outages `make test-stack-full` causes"),
        Variable("PICTURES", "`docs/images`", "folder where `make pictures` puts them"),
        Variable("LOGS", "", "folder where `make test-compose` keeps the containers' logs"),
        Variable("CRASH_AFTER", "", "set by tests: the moment in which a job kills itself"),
        Variable(
            "POINTS", "20", "at how many writes `make test-crash-points` kills a driver; all: before and after each"
        ),
        Variable("SCHEDULES", "100", "how many random schedules of faults and people supervision is tried on"),
        Variable("SCHEDULE_DAYS", "10", "how many days each of them has"),
        Variable("HANG", "", "set by tests: what happens once a batch hangs"),
        Variable(
            "TESTS_KEEP_JAVA", "0s", "how long the Java of the tests waits for the next pytest, for `make mutants`"
        ),
        Variable("JDK_JAVA_OPTIONS", "", "options of Java; tests set a default that starts faster"),
        Variable("WITH_ENGINE", "", "`.ci/run`: a command that runs another one with a Docker engine"),
    ),
)
GROUPS = (COMMAND, AIRFLOW, DRIVERS, EMBEDDED, CONTAINERS, DEVELOPMENT)
