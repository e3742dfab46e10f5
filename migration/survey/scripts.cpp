#include "migration/survey/scripts.hpp"

#include <algorithm>
#include <string_view>

#include "base/text.hpp"
#include "migration/survey/connect_units.hpp"
#include "migration/survey/unit_files.hpp"

namespace spark::host {
namespace {

constexpr std::size_t kScriptBytes = 256 << 10;
constexpr char kScript[] = "a script";

// In a line that is no comment.
bool connects(const std::string& text) {
  return std::ranges::any_of(split(text, '\n'), [](const std::string& line) {
    return !trim(line).starts_with('#') && line.find("nvme connect") != std::string::npos;
  });
}

}  // namespace

std::vector<std::string> unread_scripts(const LocalFiles& files) {
  std::vector<std::string> sentences;
  const auto look_into = [&](const std::string& file, const std::string& origin, const char* kind) {
    const std::string text = files.read(file, kScriptBytes).value_or("");
    const bool is_script = kind == kScript;
    if ((is_script && !text.starts_with("#!")) || !connects(text)) return;
    sentences.push_back(file + origin + ", " + kind +
                        " that runs `nvme connect` and maybe mounts: take out of it what the configuration "
                        "replaces");
  };
  for (const auto& unit : read_unit_files(files, ".service")) {
    for (const auto& setting : unit_settings(unit.second)) {
      if (!is_start_command(setting.first)) continue;
      for (const std::string& word : start_command_words(setting.second)) {
        if (word.starts_with('/')) look_into(word, " of " + unit.first.name, kScript);
      }
    }
  }
  look_into("/etc/rc.local", "", kScript);
  std::vector<std::string> tables = {"/etc/crontab", "/var/spool/cron/crontabs/root"};
  for (const std::string& name : names_in_folder(files.root() / "etc/cron.d"))
    tables.push_back("/etc/cron.d/" + name);
  for (const std::string& table : tables) look_into(table, "", "a table of cron");
  return sentences;
}

}  // namespace spark::host
