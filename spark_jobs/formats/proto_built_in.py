"""The schemas that Confluent's registry takes as known: schemas import it, and it is not among their references.

Only the names and numbers matter here: they are what such schemas need to compile. Text and not files, because workers
of a cluster import this package from an archive.
"""

_META = """
syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta {
  string doc = 1;
  map<string, string> params = 2;
  repeated string tags = 3;
}
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
"""
_DECIMAL = """
syntax = "proto3";
package confluent.type;
message Decimal {
  bytes value = 1;
  uint32 precision = 2;
  int32 scale = 3;
}
"""
BUILT_IN = {"confluent/meta.proto": _META, "confluent/type/decimal.proto": _DECIMAL}
"""By name, the text of each file."""
