"""The parts of Spark and Delta that adloom needs."""
