// Histories that once failed, in files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/histories/engine/history.hpp"

namespace spark::histories {

struct Found {
  std::filesystem::path file;
  History history;
  std::string oracle;
  bool is_open = false;  // its defect is not fixed
  // Each is part of a sentence of its story, without which the history shows nothing: the world's draws
  // change now and then, and a history whose defect is fixed would pass for another reason.
  std::vector<std::string> reaches;
};

// A step that no world knows does nothing, and its history would pass for that reason.
Result<> check_actions(const Area& area, const History& history);

// All of a folder, by name. Each has comments "# oracle: NAME" and "# open: …" or "# fixed: …", and any
// number of "# reaches: …".
Result<std::vector<Found>> read_found(const Area& area, const std::filesystem::path& folder);

}  // namespace spark::histories
