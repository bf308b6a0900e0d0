"""Avro and Protobuf as JSON text: values of Kafka records, and files of rows. Plain Python, without Spark."""
