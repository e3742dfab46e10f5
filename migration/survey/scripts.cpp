#include "migration/survey/scripts.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.hpp"
#include "migration/survey/connect_units.hpp"
#include "migration/survey/fstab.hpp"
#include "migration/survey/unit_files.hpp"

namespace spark::host {
namespace {

constexpr std::size_t kScriptBytes = 256 << 10;
constexpr char kScript[] = "a script";

// A read of it may wait for another host, or for a program of a user.
bool is_far(const SystemRoot& root, const std::vector<FabricDevice>& devices, const mounts::Mount& mount) {
  constexpr std::array<std::string_view, 9> kTypes = {"nfs",  "autofs", "cifs",      "smb",   "fuse",
                                                      "ceph", "9p",     "glusterfs", "lustre"};
  return fabric_below(root, devices, mount.source) != nullptr ||
         std::ranges::any_of(kTypes, [&](std::string_view type) { return mount.type.starts_with(type); });
}

// Words of a command are FIFOs and devices as well: to open one may wait for ever, take data that is for
// another program, or start a watchdog. Empty: it is no file of this host's own drives.
std::string text_of_script(const SystemRoot& root, const Survey& survey, const std::string& word) {
  const std::string path = real_path(root, survey.mounts, word);
  for (const char* folder : {"/dev", "/proc", "/sys", "/run"})
    if (path.starts_with(std::string(folder) + "/")) return {};
  const mounts::Mount* carrier = mounts::carrier_of(survey.mounts, path);
  if (carrier != nullptr && carrier->target != "/" && is_far(root, survey.devices, *carrier)) return {};
  const auto file = root / path.substr(1);
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return read_regular_file(file, kScriptBytes).value_or("");
}

// In a line that is no comment.
bool connects(const std::string& text) {
  return std::ranges::any_of(split(text, '\n'), [](const std::string& line) {
    return !trim(line).starts_with('#') && line.find("nvme connect") != std::string::npos;
  });
}

}  // namespace

std::vector<std::string> unread_scripts(const SystemRoot& root, const Survey& survey) {
  std::vector<std::string> sentences;
  const auto look_into = [&](const std::string& file, const std::string& origin, const char* kind) {
    const std::string text = text_of_script(root, survey, file);
    const bool is_script = kind == kScript;
    if ((is_script && !text.starts_with("#!")) || !connects(text)) return;
    sentences.push_back(file + origin + ", " + kind +
                        " that runs `nvme connect` and maybe mounts: take out of it what the configuration "
                        "replaces");
  };
  for (const auto& unit : read_unit_files(root, ".service")) {
    for (const auto& setting : unit_settings(unit.second)) {
      if (!is_start_command(setting.first)) continue;
      for (const std::string& word : start_command_words(setting.second)) {
        if (word.starts_with('/')) look_into(word, " of " + unit.first.name, kScript);
      }
    }
  }
  look_into("/etc/rc.local", "", kScript);
  std::vector<std::string> tables = {"/etc/crontab", "/var/spool/cron/crontabs/root"};
  for (const std::string& name : names_in_folder(root / "etc/cron.d"))
    tables.push_back("/etc/cron.d/" + name);
  for (const std::string& table : tables) look_into(table, "", "a table of cron");
  return sentences;
}

}  // namespace spark::host
