#include "migration/survey/connect_units.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"
#include "migration/survey/fstab.hpp"
#include "migration/survey/words.hpp"

namespace spark::host {
namespace {

constexpr std::size_t kTextBytes = 256 << 10;

// Or starts it, as a timer does: by its own name, if it gives no other one.
bool needs(const std::string& file, std::string_view text, const std::string& unit) {
  const std::filesystem::path path = file;
  const bool is_trigger = path.extension() == ".timer" || path.extension() == ".path";
  const auto settings = unit_settings(text);
  const bool has_unit = std::ranges::any_of(settings, [](const auto& one) { return one.first == "Unit"; });
  if (is_trigger && !has_unit && path.stem() == std::filesystem::path(unit).stem()) return true;
  for (const auto& [key, value] : settings) {
    const auto names = words_of(value);
    const bool is_need =
        key == "Requires" || key == "Requisite" || key == "BindsTo" || (is_trigger && key == "Unit");
    if (is_need && std::ranges::find(names, unit) != names.end()) return true;
  }
  return false;
}

// Units of this host's administrator, with their drop-ins.
std::vector<std::pair<std::string, std::string>> unit_texts(const LocalFiles& files) {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::string, std::string>> texts;
  for (const char* ending : {".service", ".mount", ".automount", ".target", ".timer", ".path"}) {
    for (auto& [file, text] : read_unit_files(files, ending)) texts.emplace_back(file.file, std::move(text));
  }
  for (const fs::path& folder : list_folder(files.root() / "etc/systemd/system")) {
    if (folder.extension() != ".d") continue;
    auto entries = list_folder(folder);
    std::ranges::sort(entries);  // a later one overrides those before it
    for (const fs::path& entry : entries) {
      const std::string name =
          "/etc/systemd/system/" + folder.filename().native() + "/" + entry.filename().native();
      const auto text = files.read(name, kTextBytes);
      if (text && name.ends_with(".conf")) texts.emplace_back(name, *text);
    }
  }
  return texts;
}

// "/mnt/my-data" of "mnt-my\\x2ddata.mount", as systemd-escape(1) --unescape --path does it.
std::string path_of_mount_unit(const std::string& unit) {
  const std::string name = unit.substr(0, unit.rfind('.'));
  std::string path = "/";
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_code = name.compare(i, 2, "\\x") == 0 && i + 3 < name.size();
    if (is_code) path += static_cast<char>(std::strtoul(name.substr(i + 2, 2).c_str(), nullptr, 16));
    if (!is_code) path += name[i] == '-' ? '/' : name[i];
    if (is_code) i += 3;
  }
  return path;
}

// Ways of a unit to begin with, or after, a mount.
bool is_order(const std::string& key) {
  constexpr std::array<std::string_view, 6> kOrders = {"Requires", "Requisite", "BindsTo",
                                                       "Wants",    "After",     "RequiresMountsFor"};
  return std::ranges::find(kOrders, key) != kOrders.end();
}

std::string drop_ins_of(const std::string& unit) {
  return "/etc/systemd/system/" + unit + ".d/";
}

constexpr char kScript[] = "a script";

// In a line that is no comment.
bool connects(const std::string& text) {
  return std::ranges::any_of(split(text, '\n'), [](const std::string& line) {
    return !trim(line).starts_with('#') && line.find("nvme connect") != std::string::npos;
  });
}

}  // namespace

ConnectUnit parse_unit(std::string_view text) {
  ConnectUnit unit;
  bool may_stop = false;  // a command before this one ends the unit when it fails
  auto settings = unit_settings(text);
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const auto& [key, value] = settings[i];
    const std::string name = key;
    if (!value.empty() || !is_start_command(name)) continue;
    // Without a value, it ends the list of those before it.
    for (std::size_t before = 0; before < i; ++before)
      if (settings[before].first == name) settings[before].first.clear();
  }
  for (const auto& [key, value] : settings) {
    if (is_start_command(key)) {
      const std::size_t before = unit.connections.size() + unit.discovered.size();
      read_start_command(value, unit);
      const bool connects = unit.connections.size() + unit.discovered.size() > before;
      unit.stops_early |= connects && may_stop;
      may_stop |= connects && !may_fail(value);
    }
    if (key == "ExecStop" && value.find("disconnect") != std::string::npos) unit.disconnects = true;
    if (key == "Restart" && value != "no") unit.tries_again = true;
  }
  return unit;
}

std::vector<ConnectUnit> read_connect_units(const LocalFiles& files) {
  std::vector<ConnectUnit> units;
  const auto texts = unit_texts(files);
  for (const auto& [file, text] : read_unit_files(files, ".service")) {
    std::string whole = text;
    for (const auto& [drop_in, its_text] : texts) {
      if (drop_in.starts_with(drop_ins_of(file.name))) whole += "\n" + its_text;
    }
    ConnectUnit unit = parse_unit(whole);
    if (unit.connections.empty() && !unit.connects_all) continue;
    static_cast<UnitFile&>(unit) = file;
    for (const auto& [other, other_text] : texts) {
      if (needs(other, other_text, file.name)) unit.needed_by.push_back(other);
    }
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<MountNeed> mount_needs(const LocalFiles& files) {
  std::vector<MountNeed> needs;
  for (const auto& unit : unit_texts(files)) {
    for (const auto& setting : unit_settings(unit.second)) {
      if (!is_order(setting.first)) continue;
      const bool has_paths = setting.first == "RequiresMountsFor";
      // Not words_of(): a backslash is a part of the name.
      for (const std::string& word : split(setting.second, ' ')) {
        if (has_paths ? !word.starts_with('/') : !word.ends_with(".mount")) continue;
        const std::string path = has_paths ? plain_mount_point(word) : path_of_mount_unit(word);
        needs.push_back({unit.first, setting.first + "=" + word, path});
      }
    }
  }
  return needs;
}

std::vector<std::string> unread_scripts(const LocalFiles& files) {
  std::vector<std::string> sentences;
  const auto look_into = [&](const std::string& file, const std::string& origin, const char* kind) {
    const std::string text = files.read(file, kTextBytes).value_or("");
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
