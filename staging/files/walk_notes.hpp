// What a walk noted, as text: between processes and hosts, and in the catalog.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "staging/files/walk.hpp"

namespace spark::staging {

std::string to_text(const WalkNotes& notes);
std::optional<WalkNotes> parse_walk_notes(std::string_view text);

}  // namespace spark::staging
