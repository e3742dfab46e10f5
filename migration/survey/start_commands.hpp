// What the start commands of a service unit do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "migration/survey/connect_units.hpp"

namespace spark::host {

// Adds the connections of one command line, and its commands that neither connect nor wait.
void read_start_command(const std::string& line, ConnectUnit& unit);

// Its words, without the characters before it that have a meaning for systemd.
std::vector<std::string> start_command_words(const std::string& line);

bool is_start_command(std::string_view key);  // "ExecStart", say

// Whether the unit goes on when the command fails.
bool may_fail(std::string_view line);

}  // namespace spark::host
