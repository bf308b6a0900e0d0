"""The triggers' modules under their paths before 0.1.0, which Airflow's database has for tasks that were deferred then.

Importing a submodule of this module finds it in :data:`sys.modules`, as ``os.path`` is found. Remove it after 0.1.
"""

import sys

from ad_dags.drivers.triggers import new_versions, supervise

sys.modules |= {f"{__name__}.supervise": supervise, f"{__name__}.new_versions": new_versions}
