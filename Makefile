# adloom: `make help` lists the targets.
.DEFAULT_GOAL := help
PY := .venv/bin/python

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Python packages and jars, as locked; instant when nothing changed
	@bash infra/setup.sh

lock-jars: ## Lock the jars of every pom.xml again, after a change (needs Maven)
	$(PY) -m infra.lock_jars spark_jobs/spark/jars infra/kafka infra/registry infra/trino infra/yarn

demo: setup ## A day of events: generated, run, validated, reported
	@.venv/bin/adloom demo

airflow: setup ## Start Airflow and the drivers on this machine; prints the address and, the first time, the passwords
	@$(PY) infra/airflow/embedded.py start

airflow-stop: ## Stop what `make airflow` started; the drivers finish their batches
	@$(PY) infra/airflow/embedded.py stop

up: ## Start the whole stack in containers (Docker): writes .env with random secrets, prints the addresses
	@bash infra/compose/up.sh

down: ## Stop what `make up` started; the data stay
	docker compose --profile '*' down

docs: setup ## Regenerate the reference pages in docs/ and the dashboards from the code, and build the site into build/site; a dead link fails
	$(PY) -m infra.docs.generate
	@$(PY) -m infra.docs.site

release: setup ## Wheel, sdist, locked requirements, SBOM and their SHA-256 sums of the last commit, into build/release
	@$(PY) -m infra.release

check: setup ## Lint, format, types, import rules, phrases to avoid
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	PYTHONPATH=dags .venv/bin/lint-imports
	$(PY) -m infra.words

# In the order of the folders: by default xdist starts files with few tests last, and those are the long ones.
test: setup ## Every test except those below
	$(PY) -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 20 -m "not slow and not derived and not stack and not airflow and not compose" tests

test-derived: setup ## Repairs, replays, requeues, days, credit, marks, feeds, resets, older lakes, SQL, mapped sources
	$(PY) -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 20 -m "derived and not slow" tests/spark tests/dags

test-stack: setup ## The jobs on real Kafka and MinIO (fetched, and built with Go, the first time)
	@$(PY) -m tests.stack.gobuilt
	$(PY) -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --durations 20 -m "stack and not slow" tests/stack

test-stack-full: setup ## The same, and kill -9 at 50 moments (KILLS), outages (ROUNDS), bad networks, 200,000 events
	@$(PY) -m tests.stack.gobuilt
	$(PY) -m pytest -m stack tests/stack

test-airflow: setup ## A real Airflow, on Kafka and MinIO, in a browser: deploy, watch, kill, validate, clean
	@$(PY) -m tests.stack.gobuilt
	$(PY) -m pytest -m "airflow and not slow" tests/airflow

test-airflow-full: setup ## The same, and each process killed 5 times (KILLS)
	@$(PY) -m tests.stack.gobuilt
	KILLS=$${KILLS:-5} $(PY) -m pytest -m airflow tests/airflow

pictures: setup ## Renew the pictures in the docs: the demo in a terminal, Airflow's pages with all jobs under live traffic
	@$(PY) -m tests.stack.gobuilt
	PICTURES=$${PICTURES:-docs/images} $(PY) -m pytest -m airflow tests/airflow/test_pictures.py

test-compose: setup ## The real stack in containers: flow, kills, secrets, alerts, own servers, nothing left (needs Docker)
	@$(PY) -m tests.stack.gobuilt
	$(PY) -m pytest -m compose tests/compose

test-compose-core: setup ## The core of it: up, flow, alerts, equal to an independent computation, down
	$(PY) -m pytest -m "compose and not slow" tests/compose

test-kill: setup ## kill -9 at 20 seeded moments of a run, a requeue, a repair and a replay (KILLS), and at chosen ones; then run again
	$(PY) -m pytest -m slow --timeout 3600 tests/slow/test_kills.py tests/slow/test_requeue_kills.py tests/slow/test_repair_kills.py tests/spark/test_shared_java.py

test-crash-points: setup ## A driver killed before and after single writes to MinIO (POINTS, or all, which takes a night)
	@$(PY) -m tests.stack.gobuilt
	$(PY) -m pytest -m slow -s --timeout 86400 tests/slow/test_crash_points.py

test-damage: setup ## Every kind of checkpoint file flipped, truncated, deleted, and a full disk: nothing is lost
	$(PY) -m pytest -m slow -s --timeout 1200 tests/slow/test_damaged_checkpoints.py tests/slow/test_disk_full.py

test-long: setup ## The long tests of the jobs: each setting that a reset allows, initial states, ten days of events
	$(PY) -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder -m slow --timeout 1800 tests/spark tests/expectations
	$(PY) -m pytest -m slow -s --timeout 1800 tests/slow/test_bounded_state.py

test-control: setup ## Supervision on 10,000 random schedules of faults and people
	SCHEDULES=10000 SCHEDULE_DAYS=30 $(PY) -m pytest --numprocesses 2 --timeout 7200 tests/dags/test_control_path.py

mutants: setup ## 200 small faults in the code that decides rows, one at a time: does a test notice? Takes hours; resumes where it stopped
	$(PY) -m tests.mutants $(MUTANTS)

bench: setup ## Events/s, CPU and memory of every stage on 1,000,000 events, next to DuckDB
	$(PY) -m benchmarks.bench

bench-batches: setup ## The fixed cost of a small batch once Java is warm
	$(PY) -m benchmarks.batches

bench-operators: setup ## Each stateful operator by itself: 10,000 and 1,000,000 keys, RocksDB and memory, Java and Python
	$(PY) -m benchmarks.operators

bench-mappings: setup ## What a mapping costs: ingest alone, over the same events in four formats
	$(PY) -m benchmarks.mappings

bench-ledger: setup ## CPU seconds of the ledger, compared with those of the jobs
	$(PY) -m benchmarks.ledger

bench-peers: setup ## adloom, PyFlink, plain PySpark, Pathway, DuckDB, Polars: the same work on the same files, rows compared
	$(PY) -m benchmarks.peers

bench-scaling: setup ## The main job on standalone clusters of 1, 2 and 4 single-core workers; shuffle and state bytes
	$(PY) -m benchmarks.scaling

bench-repair: setup ## What a repair costs with 0.1, 1 and 10 % late events among 10,000,000, rows compared with DuckDB
	$(PY) -m benchmarks.repair

bench-credit: setup ## What credit costs over 10,000,000 events of 90 days: the first run, and the one a day later
	$(PY) -m benchmarks.credit

bench-bots: setup ## Precision and recall of the default rules of invalid traffic on labelled bots
	$(PY) -m benchmarks.bots

bench-guard: setup ## What a run costs here and at the previous commit, in turns: the ratio of their CPU seconds
	$(PY) -m benchmarks.guard

profile: setup ## Where the CPU time of a run goes: a flame graph, and a table of its parts (needs Maven and a JDK)
	$(PY) -m benchmarks.profile

bench-stack: setup ## From click sent to row in gold at 1,000 events/s, through a real broker and both jobs
	$(PY) -m benchmarks.stack

bench-aged: setup ## Commands, resets and starts of jobs on a lake with a year behind it, on MinIO
	@$(PY) -m tests.stack.gobuilt
	$(PY) -m benchmarks.aged

bench-hour: setup ## An hour under load with short schedules, each process of Airflow killed once: gaps, memory, latency
	@$(PY) -m tests.stack.gobuilt
	$(PY) -m benchmarks.hour

bench-old-log: setup ## Does a poll of a table, or a commit to it, take longer with the age of its log? On MinIO
	$(PY) -m benchmarks.old_log

bench-forget: setup ## Do batches of deduplicate take longer the more it remembers?
	$(PY) -m benchmarks.forget

bench-compose: setup ## What a million events cost in containers, service by service (needs Docker)
	$(PY) -m benchmarks.containers

soak: setup ## 70 % of the maximum for 30 minutes, then ten times that for one: flat, and caught up?
	$(PY) -m benchmarks.soak

clean: ## Remove everything generated except .venv; containers and their data too
	@if [ -f .env ] && docker compose version >/dev/null 2>&1; then docker compose --profile '*' down --volumes; fi
	rm -rf demo build dist .mypy_cache .ruff_cache .hypothesis

.PHONY: help setup lock-jars demo up down airflow airflow-stop docs release check test test-derived test-stack test-stack-full test-airflow test-airflow-full pictures test-compose test-compose-core test-kill test-crash-points test-damage test-long test-control mutants bench bench-batches bench-mappings bench-ledger bench-operators bench-peers bench-repair bench-credit bench-bots bench-guard bench-scaling profile bench-stack bench-aged bench-hour bench-old-log bench-forget bench-compose soak clean
