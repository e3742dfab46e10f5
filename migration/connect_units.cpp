#include "migration/connect_units.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "migration/unit_files.hpp"
#include "migration/words.hpp"

namespace spark::host {
namespace {

bool is_nvme(const std::string& word) {
  return word == "nvme" || word.ends_with("/nvme");
}

bool ends_command(const std::string& word) {
  return word == ";" || word == "&&" || word == "||" || word == "|";
}

// Words as a shell would split them, also inside of `sh -c "nvme connect …; nvme connect …"`.
std::vector<std::string> flattened(const std::vector<std::string>& words) {
  std::vector<std::string> flat;
  for (const std::string& word : words) {
    const bool is_script = word.find("nvme ") != std::string::npos;
    if (!is_script) {
      flat.push_back(word);
      continue;
    }
    for (std::string inner : words_of(word)) {
      const bool ends = inner.size() > 1 && inner.ends_with(';');
      if (ends) inner.pop_back();
      flat.push_back(inner);
      if (ends) flat.push_back(";");
    }
  }
  return flat;
}

constexpr std::size_t kScriptBytes = 256 << 10;

bool is_start(const std::string& key) {
  return key == "ExecStart" || key == "ExecStartPre" || key == "ExecStartPost";
}

// Without the characters before a command that have a meaning for systemd.
std::vector<std::string> command_words(const std::string& line) {
  return words_of(line.substr(std::min(line.find_first_not_of("-@:+!"), line.size())));
}

// Every `nvme connect …` and `nvme connect-all …` in a command line.
void read_commands(const std::string& line, ConnectUnit& unit) {
  const auto words = flattened(command_words(line));
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (!is_nvme(words[i])) continue;
    const std::string& verb = words[i + 1];
    std::vector<std::string> options;
    for (std::size_t at = i + 2; at < words.size() && !ends_command(words[at]); ++at) {
      options.push_back(words[at]);
    }
    ManualConnection connection = parse_connect_options(options);
    if (verb == "connect-all") unit.connects_all = true;
    if (verb == "connect-all" && !connection.address.empty()) unit.discovered.push_back(connection);
    if (verb == "connect") unit.connections.push_back(std::move(connection));
  }
}

}  // namespace

ConnectUnit parse_unit(std::string_view text) {
  ConnectUnit unit;
  for (const auto& [key, value] : unit_settings(text)) {
    if (is_start(key)) read_commands(value, unit);
    if (key == "ExecStop" && value.find("disconnect") != std::string::npos) unit.disconnects = true;
    if (key == "Restart" && value != "no") unit.tries_again = true;
  }
  return unit;
}

std::vector<ConnectUnit> read_connect_units(const SystemRoot& root) {
  std::vector<ConnectUnit> units;
  for (const auto& [file, text] : read_unit_files(root, ".service")) {
    ConnectUnit unit = parse_unit(text);
    if (unit.connections.empty() && !unit.connects_all) continue;
    unit.name = file.name;
    unit.file = file.file;
    unit.is_link = file.is_link;
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<std::string> unread_scripts(const SystemRoot& root) {
  std::vector<std::string> sentences;
  const auto look_into = [&](const std::string& script, const std::string& origin) {
    const auto text = read_file(root / script.substr(1), kScriptBytes);
    if (!text || !text->starts_with("#!") || text->find("nvme connect") == std::string::npos) return;
    sentences.push_back(script + origin +
                        ", a script that runs `nvme connect` and maybe mounts: take out of it what the "
                        "configuration replaces");
  };
  for (const auto& [file, text] : read_unit_files(root, ".service")) {
    for (const auto& [key, value] : unit_settings(text)) {
      if (!is_start(key)) continue;
      for (const std::string& word : command_words(value)) {
        if (word.starts_with('/')) look_into(word, " of " + file.name);
      }
    }
  }
  look_into("/etc/rc.local", "");
  return sentences;
}

}  // namespace spark::host
