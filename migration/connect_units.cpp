#include "migration/connect_units.hpp"

#include <algorithm>
#include <filesystem>

#include "base/text.hpp"
#include "migration/words.hpp"

namespace spark::host {
namespace {

constexpr std::size_t kMostUnits = 4096, kUnitBytes = 256 << 10;

// Lines that end in a backslash go on in the next one.
std::vector<std::string> logical_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::string whole;
  for (const std::string& line : split(text, '\n')) {
    const std::string_view part = trim(line);
    if (part.starts_with('#') || part.starts_with(';')) continue;
    const bool goes_on = part.ends_with('\\');
    whole += std::string(goes_on ? part.substr(0, part.size() - 1) : part) + (goes_on ? " " : "");
    if (goes_on) continue;
    lines.push_back(std::move(whole));
    whole.clear();
  }
  if (!whole.empty()) lines.push_back(std::move(whole));
  return lines;
}

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

// Every `nvme connect …` and `nvme connect-all …` in a command line.
void read_commands(const std::string& line, ConnectUnit& unit) {
  const auto words = flattened(words_of(line.substr(std::min(line.find_first_not_of("-@:+!"), line.size()))));
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
  for (const std::string& line : logical_lines(text)) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string_view key = trim(std::string_view(line).substr(0, equals));
    const std::string value(trim(std::string_view(line).substr(equals + 1)));
    if (key == "ExecStart" || key == "ExecStartPre" || key == "ExecStartPost") read_commands(value, unit);
    if (key == "ExecStop" && value.find("disconnect") != std::string::npos) unit.disconnects = true;
    if (key == "Restart" && value != "no") unit.tries_again = true;
  }
  return unit;
}

std::vector<ConnectUnit> read_connect_units(const SystemRoot& root) {
  std::vector<ConnectUnit> units;
  for (const char* folder : {"etc/systemd/system", "usr/local/lib/systemd/system"}) {
    std::error_code error;
    std::size_t seen = 0;
    std::filesystem::directory_iterator entry(root / folder, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
      const std::string name = entry->path().filename().native();
      if (!name.ends_with(".service") || ++seen > kMostUnits) continue;
      const auto text = read_file(entry->path(), kUnitBytes);
      if (!text) continue;
      ConnectUnit unit = parse_unit(*text);
      if (unit.connections.empty() && !unit.connects_all) continue;
      unit.name = name;
      unit.file = "/" + std::string(folder) + "/" + name;
      units.push_back(std::move(unit));
    }
  }
  std::sort(units.begin(), units.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  return units;
}

}  // namespace spark::host
