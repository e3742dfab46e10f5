// Hosts as their owners set them up, each a file of tests/unit/cli/hosts: what `import` makes of it, what its
// steps do, and what `import --undo` puts back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>

#include "base/file.hpp"
#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "tests/unit/cli/fixture.hpp"
#include "tests/unit/cli/verbs/described_host.hpp"

namespace spark::cli {
namespace {

namespace fs = std::filesystem;

// Files and links below etc with their content and mode.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder).native();
    const bool is_link = entry.is_symlink();
    if (is_link) files[name] = "-> " + fs::read_symlink(entry.path()).native();
    const bool is_new = name.starts_with("spark-stage/") || name.ends_with(".before-undo");
    if (is_link || entry.is_directory() || is_new) continue;
    const auto mode = std::to_string(static_cast<unsigned>(entry.status().permissions()));
    files[name] = mode + "\n" + read_file(entry.path()).value_or("(unreadable)");
  }
  return files;
}

class ImportedHost : public ::testing::TestWithParam<std::string> {
 protected:
  ImportedHost() : host_(std::string(SPARK_HOSTS_DIR) + "/" + GetParam()) {}

  fs::path at(const std::string& file) const { return host_.root() / file; }

  // The output of one command, with all that it says.
  std::string type(const std::vector<std::string>& words, int status) {
    Program program;
    program.context.root = host_.root();
    EXPECT_EQ(program.run(words), status) << join(words, " ") << "\n" << program.errors();
    const std::string said = program.output() + program.errors();
    for (const std::string& key : host_.keys()) EXPECT_EQ(said.find(key), std::string::npos) << said;
    return said;
  }

  void import() {
    said_ = type({"import", "--dry-run"}, 0);
    const std::string file = at("etc/spark-stage/spark-stage.yaml");
    fs::create_directories(at("etc/spark-stage"));
    said_ += type({"import", "--output", file}, 0);
    type({"config", "check", file}, 0);
    yaml_ = read_file(file).value_or("");
    for (const std::string& key : host_.keys()) EXPECT_EQ(yaml_.find(key), std::string::npos) << yaml_;
    said_ += yaml_;
    auto parsed = config::parse(yaml_, file);
    ASSERT_TRUE(parsed) << parsed.error().message() << yaml_;
    config_ = std::move(*parsed);
  }

  const config::Volume* volume_at(const std::string& mount) const {
    const auto found = std::find_if(config_.volumes.begin(), config_.volumes.end(),
                                    [&](const config::Volume& volume) { return volume.mount == mount; });
    return found == config_.volumes.end() ? nullptr : &*found;
  }

  // The target of a subsystem: by its volume, or by the comment about a volume without a mount point.
  const config::Target* target_of(const std::string& subsystem) const {
    std::smatch found;
    const std::regex volume("target: (\\S+)\n[ #]*subsystem: \"?" + subsystem + "\"?\n");
    if (!std::regex_search(yaml_, found, volume)) return nullptr;
    const auto target = config_.targets.find(found[1]);
    return target == config_.targets.end() ? nullptr : &target->second;
  }

  // Its files instead of this computer's. What a step looks for in fstab stays as it is.
  static std::string in_this_host(const std::string& command) {
    if (command.starts_with("findmnt ")) return command;
    const bool is_pattern = command.starts_with("grep ") || command.starts_with("sed ");
    return std::regex_replace(
        command, std::regex(is_pattern ? "( )/(etc)/(?=fstab)" : "( '?)/(etc|var|usr)/"), "$1$2/");
  }

  // The closing steps as a script: in this host's folder, with commands that only write down what they would
  // do.
  std::string script() const {
    std::string text =
        "findmnt() { [ $1 = -M ] || awk -v at=\"$5\" '!/^#/ && $2 == at { n++ } END { exit !n }'; }; "
        "umount() { echo \"$1\" >> umounted; }; systemctl() { echo \"$*\" >> systemctl; "
        "}\n";
    const std::size_t begin = yaml_.find("# To move");
    for (const std::string& line : split(begin == std::string::npos ? "" : yaml_.substr(begin), '\n')) {
      if (!line.starts_with("#   ") || line.starts_with("#     ")) continue;
      const std::string command = line.substr(4);
      if (command.starts_with("spark-stage ") || command == "cd /") continue;
      text += in_this_host(command) + "\n";
    }
    return text;
  }

  void take_steps() {
    const std::string file = at("steps.sh");
    ASSERT_TRUE(write_file_atomically(file, script(), 0600));
    const std::string command =
        "cd '" + host_.root().path.native() + "' && umask 077 && sh -e ./steps.sh 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0) << script();
    for (const std::string& mount : lines_of("umounted")) check_unmounted(mount);
    for (const std::string& words : lines_of("systemctl")) {
      EXPECT_TRUE(!words.starts_with("stop ") || words.ends_with(".automount"))
          << "it would disconnect: " << words;
    }
  }

  std::vector<std::string> lines_of(const std::string& file) const {
    std::vector<std::string> lines = split(read_file(at(file)).value_or(""), '\n');
    std::erase(lines, "");
    return lines;
  }

  // What is mounted there belongs to the volume that takes its place.
  void check_unmounted(const std::string& mount) const {
    const config::Volume* volume = volume_at(mount);
    ASSERT_NE(volume, nullptr) << mount << " is unmounted, and nothing takes its place\n" << yaml_;
    const std::string subsystem = host_.subsystem_mounted_at(mount);
    EXPECT_EQ(subsystem, volume->nvme ? volume->nvme->subsystem : "")
        << "another device is unmounted from " << mount;
  }

  // A line of fstab is taken away only for a volume at its mount point.
  void check_fstab(const std::string& before) const {
    const auto old_lines = split(before, '\n'),
               new_lines = split(read_file(at("etc/fstab")).value_or(""), '\n');
    ASSERT_EQ(old_lines.size(), new_lines.size());
    for (std::size_t i = 0; i < old_lines.size(); ++i) {
      if (old_lines[i] == new_lines[i]) continue;
      EXPECT_EQ(new_lines[i], "#" + old_lines[i]);
      std::string mount = test::words_in(old_lines[i])[1];
      mount = std::regex_replace(mount, std::regex("\\\\040"), " ");
      while (mount.size() > 1 && mount.ends_with('/')) mount.pop_back();
      EXPECT_NE(volume_at(mount), nullptr) << old_lines[i] << "\n" << yaml_;
    }
  }

  bool holds(const std::vector<std::string>& words, const std::string& rest) const {
    const std::string& kind = words[0];
    const std::string first = words.size() > 1 ? words[1] : "";
    const bool is_said = said_.find(rest) != std::string::npos;
    if (kind == "volume") return volume_at(rest) != nullptr;
    if (kind == "left") return volume_at(rest) == nullptr && is_said;
    if (kind == "says") return is_said;
    if (kind == "silent") return !is_said;
    const bool has_unit = fs::exists(fs::symlink_status(at("etc/systemd/system/" + first)));
    if (kind == "kept" || kind == "moved") return has_unit == (kind == "kept");
    if (kind == "option") return has_option(volume_at(first), words[2]);
    const config::Target* target = target_of(first);
    if (target == nullptr) return false;
    if (kind == "auth") return !target->options.host_key_file.empty();
    if (kind == "tls") return !target->options.tls_psk_file.empty();
    if (kind == "portals") return std::to_string(target->portals.size()) == words[2];
    if (kind == "no-interface") return target->options.interface.empty();
    return kind == "apart" && is_apart(target, target_of(words[2]));
  }

  static bool has_option(const config::Volume* volume, const std::string& option) {
    return volume != nullptr && std::count(volume->options.begin(), volume->options.end(), option) == 1;
  }

  static bool is_apart(const config::Target* one, const config::Target* other) {
    return one != nullptr && other != nullptr && one != other &&
           one->options.host_key_file != other->options.host_key_file;
  }

  const test::DescribedHost host_;
  std::string said_, yaml_;
  config::Config config_;
};

TEST_P(ImportedHost, LosesNothingThatIsNotTakenOverAndCanGoBack) {
  const auto before = files_of(at("etc"));
  const std::string fstab = read_file(at("etc/fstab")).value_or("");
  ASSERT_NO_FATAL_FAILURE(import());
  ASSERT_NO_FATAL_FAILURE(take_steps());
  check_fstab(fstab);
  for (const auto& [words, rest] : host_.expectations())
    EXPECT_TRUE(holds(words, rest)) << words[0] << " " << rest;
  const std::string kept = at("var/lib/spark-stage/before-import");
  const bool has_copies = fs::exists(kept) && !files_of(kept).empty();
  type({"import", "--undo"}, has_copies ? 0 : 3);
  EXPECT_EQ(files_of(at("etc")), before);
  if (HasFailure()) std::fputs(yaml_.c_str(), stderr);
}

std::vector<std::string> all_hosts() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(SPARK_HOSTS_DIR))
    names.push_back(entry.path().filename().native());
  std::sort(names.begin(), names.end());
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  return std::regex_replace(fs::path(info.param).stem().native(), std::regex("[^A-Za-z0-9]"), "_");
}

INSTANTIATE_TEST_SUITE_P(Hosts, ImportedHost, ::testing::ValuesIn(all_hosts()), test_name);

}  // namespace
}  // namespace spark::cli
