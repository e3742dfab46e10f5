// What the start commands of a service unit do.
#include "migration/survey/connect_units.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "migration/survey/words.hpp"

namespace spark::host {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kPrefixes = "-@:+!|";

std::string program_of(const std::string& word) {
  return word.substr(word.rfind('/') + 1);
}

bool is_nvme(const std::string& word) {
  return program_of(word) == "nvme";
}

bool ends_command(const std::string& word) {
  return !word.empty() && word.find_first_not_of(";&|") == std::string::npos;
}

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& known, std::string_view word) {
  return std::ranges::find(known, word) != known.end();
}

// A word of a script: "nqn.a;" and "nqn.a&" are a word and the end of its command, and "2>&1;" is as well.
void add_parts(const std::string& word, Words& flat) {
  const auto is_end = [&](std::size_t at) {
    const bool is_redirection = word[at] == '&' && ((at > 0 && word[at - 1] == '>') || word[at + 1] == '>');
    return ends_command(word.substr(at, 1)) && !is_redirection;
  };
  for (std::size_t at = 0; at < word.size();) {
    std::size_t end = at + 1;
    while (end < word.size() && is_end(end) == is_end(at)) ++end;
    flat.push_back(word.substr(at, end - at));
    at = end;
  }
}

// The word behind `sh -c`.
bool is_script(const Words& words, std::size_t at) {
  constexpr std::array<std::string_view, 5> kShells = {"sh", "bash", "dash", "ksh", "zsh"};
  return at >= 2 && is_among(kShells, program_of(words[at - 2])) && words[at - 1].starts_with('-') &&
         words[at - 1].ends_with('c');
}

// Words as a shell would split them, also inside of `sh -c "nvme connect …; nvme connect …"`.
Words flattened(const Words& words) {
  Words flat;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].find("nvme ") == std::string::npos && !is_script(words, i)) {
      flat.push_back(words[i]);
      continue;
    }
    for (const std::string& inner : words_of(words[i])) add_parts(inner, flat);
  }
  return flat;
}

// "LANG=C" before a command; not one whose value a command gives.
bool is_assignment(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  const bool is_name =
      std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                  [](char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; });
  return is_name && word.find_first_of("`(") == std::string::npos;
}

// Where a command begins at or behind `at`, past what only runs it, or decides whether and how often it runs.
std::size_t command_at(const Words& words, std::size_t at) {
  constexpr std::array<std::string_view, 12> kBefore = {"if", "then", "else", "elif", "while", "until",
                                                        "do", "!",    "exec", "{",    "(",     "time"};
  const auto skip = [&](auto is_skipped) {
    while (at < words.size() && is_skipped(words[at])) ++at;
  };
  const auto is_option = [](const std::string& word) { return word.starts_with('-'); };
  while (at < words.size() && !ends_command(words[at])) {
    const std::string program = program_of(words[at]);
    if (is_among(kBefore, words[at]) || is_assignment(words[at])) {
      ++at;
    } else if (program == "env") {
      ++at;
      skip([&](const std::string& word) { return is_option(word) || is_assignment(word); });
    } else if (program == "timeout") {
      ++at;
      skip(is_option);
      if (at < words.size() && !ends_command(words[at])) ++at;  // the duration
    } else if (is_script(words, at + 2)) {
      at += 2;
    } else {
      break;
    }
  }
  return std::min(at, words.size());
}

// The words of one command.
using Command = std::span<const std::string>;

// `echo 4096 > /sys/…`
bool writes_file(Command command) {
  constexpr std::array<std::string_view, 5> kNowhere = {"/dev/null", "/dev/stdout", "/dev/stderr",
                                                        "/dev/kmsg", "/dev/console"};
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::size_t at = command[i].rfind('>');
    if (at == std::string::npos) continue;
    const bool is_alone = at + 1 == command[i].size();
    const std::string to = !is_alone                ? command[i].substr(at + 1)
                           : i + 1 < command.size() ? command[i + 1]
                                                    : "";
    if (!to.starts_with('&') && !is_among(kNowhere, to)) return true;
  }
  return false;
}

// It changes nothing that would be missed.
bool is_idle(Command command) {
  constexpr std::array<std::string_view, 31> kIdle = {
      "modprobe", "sleep",      "true",    "false", "echo",   "printf", "ping", "udevadm",
      "wait",     "grep",       "cat",     "exit",  "fi",     "for",    "done", "break",
      "continue", "[",          "test",    "set",   "logger", "}",      ")",    ":",
      "lsblk",    "mountpoint", "findmnt", "date",  "seq",    "getent", "nc"};
  constexpr std::array<std::string_view, 8> kVerbs = {"connect", "connect-all", "disconnect", "discover",
                                                      "list",    "list-subsys", "version",    "help"};
  if (writes_file(command)) return false;
  if (is_nvme(command.front())) return command.size() == 1 || is_among(kVerbs, command[1]);
  return is_among(kIdle, program_of(command.front()));
}

void read_others(const Words& words, ConnectUnit& unit) {
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t begin = command_at(words, at);
    std::size_t end = begin;
    while (end < words.size() && !ends_command(words[end])) ++end;
    const Command command(words.data() + begin, end - begin);
    if (!command.empty() && !is_idle(command)) {
      std::string text;
      for (const std::string& word : command) text += (text.empty() ? "" : " ") + without_key(word);
      unit.others.push_back(std::move(text));
    }
    at = std::max(end, at) + 1;
  }
}

}  // namespace

Words start_command_words(const std::string& line) {
  return words_of(line.substr(std::min(line.find_first_not_of(kPrefixes), line.size())));
}

bool is_start_command(std::string_view key) {
  return key == "ExecStart" || key == "ExecStartPre" || key == "ExecStartPost";
}

bool may_fail(std::string_view line) {
  return line.substr(0, line.find_first_not_of(kPrefixes)).find('-') != std::string_view::npos;
}

void read_start_command(const std::string& line, ConnectUnit& unit) {
  const auto words = flattened(start_command_words(line));
  read_others(words, unit);
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (!is_nvme(words[i])) continue;
    const std::string& verb = words[i + 1];
    Words options;
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

}  // namespace spark::host
