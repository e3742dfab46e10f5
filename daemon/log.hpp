// The daemon's log on stderr: sentences, which journald reads with their priority, or JSON lines. Only this
// code uses spdlog.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spark::log {

enum class Format { Text, Json };

// Call once, first. Under journald each line of text begins with its sd-daemon priority, otherwise with the
// time.
void start(Format format = Format::Text);

// From now on `told` gets the sentences, and nothing is written: a history tells them as part of its story.
// An empty function ends that.
void redirect(std::function<void(std::string_view)> told);

void info(std::string_view sentence);
void warning(std::string_view sentence);
void error(std::string_view sentence);

struct Field {
  std::string name, value;  // "SPARK_VOLUME", "datasets"
};

// An event about an object: under journald its fields select it, as in `journalctl SPARK_VOLUME=datasets`.
void event(bool is_trouble, const std::string& sentence, const std::vector<Field>& fields);

// Logs an error after which the daemon continues: "sentence; continuing".
void survived(const Error& error);

}  // namespace spark::log
