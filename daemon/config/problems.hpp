// All problems of a config file, so that a person can fix them in one pass.
#pragma once

#include <compare>
#include <string>
#include <vector>

namespace spark::config {

// Counted from 1.
struct Position {
  int line = 1, column = 1;
  auto operator<=>(const Position&) const = default;
};

class Problems {
 public:
  void add(Position at, std::string sentence);
  bool none() const { return problems_.empty(); }
  // Further problems are counted, not shown, and need no suggestion.
  bool are_many() const { return problems_.size() >= kMostShown; }
  // "file:line:column: sentence", one per line, in the file's order; at most a hundred.
  std::string report(const std::string& file_name) const;

 private:
  static constexpr std::size_t kMostShown = 100;
  struct Problem {
    Position at;
    std::string sentence;
  };
  std::vector<Problem> problems_;
};

}  // namespace spark::config
