#include "migration/steps.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "base/text.hpp"

namespace spark::host {
namespace {

// A command a line: after one that fails in the middle of `a && b`, `sh -e` would go on with the next line.
std::string step(const std::string& command) {
  return "#   " + command + "\n";
}

// Each once, in their order.
template <class Of>
std::vector<std::string> of_taken(const std::vector<Item>& items, Of&& of) {
  std::vector<std::string> all;
  for (const Item& item : items) {
    const std::string one = item.is_taken() ? of(item) : std::string();
    if (!one.empty() && std::ranges::find(all, one) == all.end()) all.push_back(one);
  }
  return all;
}

std::vector<UnitFile> units_of_taken(const std::vector<Item>& items) {
  std::vector<UnitFile> all;
  for (const Item& item : items) {
    if (item.is_taken()) all.insert(all.end(), item.units.begin(), item.units.end());
  }
  return all;
}

// Matches the whole line for grep and sed, wherever it stands by then, in any encoding. `delimiter`: sed's, 0
// for grep, where a backslash would give "|" a meaning.
std::string pattern_of(const std::string& line, char delimiter) {
  std::string pattern;
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = byte >= ' ' && byte < 0x7f;
    if (std::string_view("\\.*[]^$").find(c) != std::string_view::npos || c == delimiter) pattern += '\\';
    if (is_plain) pattern += c;
    if (!is_plain && !pattern.ends_with(".*")) pattern += ".*";
  }
  return pattern;
}

std::string as_comment(const std::string& line) {
  return " -e " + shell_word("s|^" + pattern_of(line, '|') + "$|#&|");
}

std::string comment_out(const std::vector<std::string>& lines) {
  std::string command = "sed -i";
  for (const std::string& line : lines) command += as_comment(line);
  return command + " /etc/fstab";
}

std::string end_with(const std::string& problem) {
  return "{ printf '%s\\n' " + shell_word(problem) + " >&2; false; }";
}

// sed passes over a line that is another one by now, and the next boot would mount it beside the volume. One
// that is a comment already is as it should be.
std::string check_line(const Item& item) {
  const std::string changed = "the line of " + item.where +
                              " in /etc/fstab has changed since the import: move "
                              "/etc/spark-stage/spark-stage.yaml away, and import again";
  return "grep -q " + shell_word("^#*" + pattern_of(item.fstab_line, 0) + "$") + " /etc/fstab || " +
         end_with(changed);
}

// One that was commented out and has a changed copy. The lines that were there at the import are no other
// ones.
std::string check_no_other_line(const Item& item) {
  std::string known = as_comment(item.fstab_line);
  for (const std::string& line : item.other_lines) known += as_comment(line);
  const std::string other = "/etc/fstab has another line of " + item.where +
                            " than at the import: remove it, or move /etc/spark-stage/spark-stage.yaml "
                            "away, and import again";
  return "sed" + known + " /etc/fstab | findmnt -n -F /dev/stdin -M " + shell_word(item.where) + " && " +
         end_with(other);
}

// Begun once more after their end, they would unmount what spark-staged has mounted.
std::string check_not_begun(const std::string& kept) {
  return "[ ! -e " + kept + " ] || " +
         end_with(kept + " is there: these steps were begun before: go on with the one that failed");
}

std::string unit_steps(const UnitFile& unit, const std::string& kept) {
  // The copy of a link is a link too, and disabling such a unit may have removed it.
  const std::string away = unit.is_link ? "rm -f " + shell_word(unit.file)
                                        : "mv " + shell_word(unit.file) + " " + shell_word(kept + unit.file);
  const bool connects = unit.name.ends_with(".service");
  return step("systemctl disable " + shell_word(unit.name)) + step(away) +
         (connects ? "# Do not stop it: stopping disconnects.\n" : "");
}

}  // namespace

// As systemd-escape(1) --path does it.
std::string automount_unit(const std::string& mount) {
  std::string name;
  for (const char c : mount) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_kept =
        (std::isalnum(byte) != 0 && byte < 0x80) || c == ':' || c == '_' || (c == '.' && !name.empty());
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", byte);
    if (c == '/') {
      name += name.empty() ? "" : "-";
    } else {
      name += is_kept ? std::string(1, c) : code;
    }
  }
  return name + ".automount";
}

std::string steps_text(const std::vector<Item>& items, WallTime now) {
  const auto lines = of_taken(items, [](const Item& item) { return item.fstab_line; });
  const auto units = units_of_taken(items);
  std::vector<std::string> changed;
  if (!lines.empty()) changed.emplace_back("/etc/fstab");
  for (const UnitFile& unit : units) {
    changed.push_back(shell_word(unit.file));
    for (const std::string& link : unit.links) changed.push_back(shell_word(link));
  }
  // Each move has copies of its own.
  const std::string all = "/" + std::string(kKept), kept = all + "/" + rfc3339(now);
  std::string uses;
  for (const Item& item : items)
    if (!item.ended_by.empty())
      uses += "# - " + item.ended_by + " " + shell_word(printable(item.ended)) + "\n";
  if (!uses.empty()) uses = "# First end what lies on these volumes, and what needs it:\n" + uses;
  std::string text =
      uses +
      "# To move, with the jobs that use these volumes stopped, as root, one after the other, or at once:\n"
      "# sed -n 's/^#   //p' /etc/spark-stage/spark-stage.yaml | sudo sh -ex\n";
  const auto mounted = of_taken(items, [](const Item& item) { return item.mounted; });
  if (!mounted.empty())
    text +=
        "# It ends at the first step that fails. `target is busy`: a program has files open there, and\n"
        "# `fuser -vm MOUNTPOINT` names it; end it, and begin again.\n";
  const bool changes = !changed.empty() || !mounted.empty();
  if (changes) text += step(check_not_begun(kept));
  text += step("spark-stage config check");
  for (const std::string& checks : of_taken(items, [](const Item& item) {
         return item.fstab_line.empty() ? std::string()
                                        : step(check_line(item)) + step(check_no_other_line(item));
       }))
    text += checks;
  // Before the first change of a file, and passing over what is unmounted already: the steps can be begun
  // again.
  for (const std::string& mount : mounted)
    text += step("findmnt -M " + shell_word(mount) + " >/dev/null && umount " + shell_word(mount));
  for (const std::string& unit : of_taken(items, [](const Item& item) { return item.automount; }))
    text += step("systemctl stop " + shell_word(unit));
  // In /: cp of coreutils 9.1 looks for the parents there.
  if (changes) text += step("mkdir -p " + all) + step("mkdir " + kept);
  if (!changed.empty()) text += step("cd /") + step("cp -a --parents " + join(changed, " ") + " " + kept);
  if (!lines.empty()) text += step(comment_out(lines));
  for (const UnitFile& unit : units) text += unit_steps(unit, kept);
  text +=
      step("systemctl daemon-reload") + step("systemctl enable spark-staged") +
      step("systemctl reload-or-restart spark-staged") +  // it may run, for volumes that were there before
      step("spark-stage status");
  return text + (changed.empty() ? "" : "# To go back: `sudo spark-stage import --undo`\n");
}

}  // namespace spark::host
