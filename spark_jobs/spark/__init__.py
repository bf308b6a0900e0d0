"""What adloom needs of Spark and Delta."""
