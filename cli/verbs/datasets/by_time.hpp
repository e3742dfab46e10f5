// A time ahead, as a person writes it.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace spark::cli {

// "18:00" is the next time that the clock here shows that; "2h" is from now on;
// "2026-11-25T18:00:00Z" and "2026-11-25T18:00:00+01:00" are RFC 3339. Invalid for anything else, for a time
// that is over, and for one in more than ten years.
Result<WallTime> parse_by(const std::string& text, WallTime now);

}  // namespace spark::cli
