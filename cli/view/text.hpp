// Words, counts and ages as a person reads them in a table.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace spark::cli {

// Words broken into lines of at most `width` columns, each behind `indent` spaces, each with its end. A
// command in quotes stays on one line, even on a wider one, so that it can be copied.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

// A sentence of a person's: on a terminal broken at its width, further lines behind two more spaces than the
// first; else one line for whatever reads it. With its end.
std::string sentence(std::string_view text, std::size_t columns, bool is_terminal);

// "1,281,167"; "1 file", "2 files".
std::string format_count(std::uint64_t number);
std::string counted(std::uint64_t number, const std::string& noun);

// "2.50 of 10.0 GB", "850 MB of 1.20 GB"
std::string part_of(Bytes done, Bytes total);

// "35 s", "2 min 10 s", "1 h 05 min": of a promise, so from two minutes on to ten seconds.
std::string format_left(std::chrono::seconds left);

// "12 s", "5 min", "3 h 10 min", "3 d 4 h".
std::string format_age(std::chrono::seconds age);

// The age of a time of the API; "-" when there is none. Until: the same for a time ahead.
std::string age_of(const std::optional<std::string>& time, WallTime now);
std::string time_until(const std::optional<std::string>& time, WallTime now);

}  // namespace spark::cli
