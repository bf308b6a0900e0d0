"""Settings of the job ``measure`` under which nothing is late that is not late for the other jobs."""

_SECTIONS = ("campaign_stats", "moving_average", "user_status")
_AS_LONG_AS_THE_OTHERS = "3h"
PATIENT = {section: {"watermark": _AS_LONG_AS_THE_OTHERS} for section in _SECTIONS}
"""As a table of settings."""
PATIENT_ENVIRONMENT = {f"ADLOOM_{section.upper()}__WATERMARK": _AS_LONG_AS_THE_OTHERS for section in _SECTIONS}
"""As variables."""
PATIENT_TOML = "".join(f'\n[{section}]\nwatermark = "{_AS_LONG_AS_THE_OTHERS}"\n' for section in _SECTIONS)
"""As a part of a file."""
