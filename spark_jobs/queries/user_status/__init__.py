"""When users come online, are active, and become inactive."""
