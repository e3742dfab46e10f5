// The daemon's log: sentences to stderr, where journald reads them with their priority, or JSON lines
// there. The only code that sees spdlog.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spark::log {

enum class Format { Text, Json };

// Call once, first. Under journald each line of text begins with its sd-daemon priority; else with the time.
void start(Format format = Format::Text);

void debug(std::string_view sentence);
void info(std::string_view sentence);
void warning(std::string_view sentence);
void error(std::string_view sentence);

struct Field {
  std::string name, value;  // "SPARK_VOLUME", "datasets"
};

// What happened to something: under journald its fields find it, as in `journalctl SPARK_VOLUME=datasets`.
void event(bool is_trouble, const std::string& sentence, const std::vector<Field>& fields);

// Logs an error that was survived: "sentence; continuing".
void survived(const Error& error);

}  // namespace spark::log
