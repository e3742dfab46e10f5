#include "migration/survey/connect_units.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.hpp"
#include "migration/survey/unit_files.hpp"
#include "migration/survey/words.hpp"

namespace spark::host {
namespace {

bool is_nvme(const std::string& word) {
  return word == "nvme" || word.ends_with("/nvme");
}

bool ends_command(const std::string& word) {
  return !word.empty() && word.find_first_not_of(";&|") == std::string::npos;
}

// A word of a script: "nqn.a;" and "nqn.a&" are a word and the end of its command.
void add_parts(const std::string& word, std::vector<std::string>& flat) {
  const bool is_redirection = word.find(">&") != std::string::npos || word.find("&>") != std::string::npos;
  for (std::size_t at = 0; at < word.size();) {
    const bool ends = !is_redirection && ends_command(word.substr(at, 1));
    const std::size_t end =
        is_redirection
            ? word.size()
            : std::min(ends ? word.find_first_not_of(";&|", at) : word.find_first_of(";&|", at), word.size());
    flat.push_back(word.substr(at, end - at));
    at = end;
  }
}

// The word behind `sh -c`.
bool is_script(const std::vector<std::string>& words, std::size_t at) {
  return at == 2 && words[0].ends_with("sh") && words[1].starts_with('-') && words[1].ends_with('c');
}

// Words as a shell would split them, also inside of `sh -c "nvme connect …; nvme connect …"`.
std::vector<std::string> flattened(const std::vector<std::string>& words) {
  std::vector<std::string> flat;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].find("nvme ") == std::string::npos && !is_script(words, i)) {
      flat.push_back(words[i]);
      continue;
    }
    for (const std::string& inner : words_of(words[i])) add_parts(inner, flat);
  }
  return flat;
}

constexpr std::size_t kScriptBytes = 256 << 10;

bool is_start(const std::string& key) {
  return key == "ExecStart" || key == "ExecStartPre" || key == "ExecStartPost";
}

constexpr char kPrefixes[] = "-@:+!|";

// Without the characters before a command that have a meaning for systemd.
std::vector<std::string> command_words(const std::string& line) {
  return words_of(line.substr(std::min(line.find_first_not_of(kPrefixes), line.size())));
}

// Programs and words of a shell that change nothing that would be missed.
bool is_idle(const std::string& word) {
  constexpr std::array kIdle = {"nvme", "modprobe", "sleep", "true",    "echo", "ping",  "udevadm", "wait",
                                "grep", "exit",     "sh",    "bash",    "if",   "then",  "else",    "fi",
                                "for",  "while",    "until", "do",      "done", "break", "[",       "test",
                                "!",    "exec",     "set",   "logger",  "case", "esac",  "{",       "}",
                                "(",    ")",        ":",     "timeout", "env",  "false"};
  return std::find(kIdle.begin(), kIdle.end(), word.substr(word.rfind('/') + 1)) != kIdle.end();
}

void read_others(const std::vector<std::string>& words, ConnectUnit& unit) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool is_first = i == 0 || is_script(words, i) || ends_command(words[i - 1]) ||
                          words[i - 1] == "do" || words[i - 1] == "then" || words[i - 1] == "else";
    if (!is_first || ends_command(words[i]) || is_idle(words[i])) continue;
    std::string command = without_key(words[i]);
    for (std::size_t at = i + 1; at < words.size() && !ends_command(words[at]); ++at)
      command += " " + without_key(words[at]);
    unit.others.push_back(command);
  }
}

// Every `nvme connect …` and `nvme connect-all …` in a command line.
void read_commands(const std::string& line, ConnectUnit& unit) {
  const auto words = flattened(command_words(line));
  read_others(words, unit);
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (!is_nvme(words[i])) continue;
    const std::string& verb = words[i + 1];
    std::vector<std::string> options;
    std::size_t at = i + 2;
    for (; at < words.size() && !ends_command(words[at]); ++at) {
      options.push_back(words[at]);
    }
    ManualConnection connection = parse_connect_options(options);
    if (verb != "connect" && verb != "connect-all") continue;
    const auto has_loop = [](const std::string& word) { return word == "until" || word == "while"; };
    if (std::any_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i), has_loop))
      unit.tries_again = true;
    if (at + 1 < words.size() && words[at] == "&&" && is_nvme(words[at + 1])) unit.stops_early = true;
    if (verb == "connect-all") unit.connects_all = true;
    if (verb == "connect-all") unit.discovered.push_back(connection);
    if (verb == "connect") unit.connections.push_back(std::move(connection));
  }
}

bool needs(std::string_view text, const std::string& unit) {
  for (const auto& [key, value] : unit_settings(text)) {
    const auto names = words_of(value);
    const bool is_need = key == "Requires" || key == "Requisite" || key == "BindsTo";
    if (is_need && std::ranges::find(names, unit) != names.end()) return true;
  }
  return false;
}

// Units of this host's administrator, with their drop-ins.
std::vector<std::pair<std::string, std::string>> unit_texts(const LocalFiles& files) {
  namespace fs = std::filesystem;
  std::vector<std::pair<std::string, std::string>> texts;
  for (const char* ending : {".service", ".mount", ".automount", ".target", ".timer"}) {
    for (auto& [file, text] : read_unit_files(files, ending)) texts.emplace_back(file.file, std::move(text));
  }
  for (const fs::path& folder : list_folder(files.root() / "etc/systemd/system")) {
    if (folder.extension() != ".d") continue;
    for (const fs::path& entry : list_folder(folder)) {
      const std::string name =
          "/etc/systemd/system/" + folder.filename().native() + "/" + entry.filename().native();
      const auto text = files.read(name, kScriptBytes);
      if (text && name.ends_with(".conf")) texts.emplace_back(name, *text);
    }
  }
  return texts;
}

}  // namespace

ConnectUnit parse_unit(std::string_view text) {
  ConnectUnit unit;
  bool may_stop = false;  // a command before this one ends the unit when it fails
  for (const auto& [key, value] : unit_settings(text)) {
    if (is_start(key)) {
      const std::size_t before = unit.connections.size() + unit.discovered.size();
      read_commands(value, unit);
      const bool connects = unit.connections.size() + unit.discovered.size() > before;
      unit.stops_early |= connects && may_stop;
      may_stop |=
          connects && value.substr(0, value.find_first_not_of(kPrefixes)).find('-') == std::string::npos;
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
    ConnectUnit unit = parse_unit(text);
    if (unit.connections.empty() && !unit.connects_all) continue;
    unit.name = file.name;
    unit.file = file.file;
    unit.is_link = file.is_link;
    unit.links = file.links;
    for (const auto& [other, other_text] : texts) {
      if (needs(other_text, file.name)) unit.needed_by.push_back(other);
    }
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<std::string> unread_scripts(const LocalFiles& files) {
  std::vector<std::string> sentences;
  const auto look_into = [&](const std::string& script, const std::string& origin) {
    const auto text = files.read(script, kScriptBytes);
    if (!text || !text->starts_with("#!") || text->find("nvme connect") == std::string::npos) return;
    sentences.push_back(script + origin +
                        ", a script that runs `nvme connect` and maybe mounts: take out of it what the "
                        "configuration replaces");
  };
  for (const auto& [file, text] : read_unit_files(files, ".service")) {
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
