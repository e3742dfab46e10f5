// YAML as a plain tree with positions, input of the section readers. Only yaml.cpp uses yaml-cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/problems.hpp"

namespace spark::config {

struct Member;

struct Node {
  enum class Kind { Null, Scalar, List, Map };
  Kind kind = Kind::Null;
  Position at;
  std::string text;             // Scalar, as written without its quotes
  bool quoted = false;          // Scalar
  std::vector<Node> items;      // List
  std::vector<Member> members;  // Map, in the file's order, no key twice
};

struct Member {
  std::string key;
  Position at;  // of the key
  Node value;
};

// No value if the text is not one YAML document; the problems then have the reason. Duplicate keys are
// problems too, and the first one counts. Anchors, aliases, merge keys and tags are refused: a config must be
// readable as written, and must not expand.
std::optional<Node> read_yaml(std::string_view text, Problems& problems);

}  // namespace spark::config
