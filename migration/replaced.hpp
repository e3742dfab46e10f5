// Whether the imported configuration connects everything that a unit connects.
#pragma once

#include <string>
#include <vector>

#include "migration/import.hpp"

namespace spark::host {

// Why the unit has to stay, by what it says and not by what happens to be connected; empty: it gives way.
std::string reason_to_keep(const ConnectUnit& unit, const Survey& survey, const std::vector<Item>& items);

}  // namespace spark::host
