// A host that a text file describes: its files, its connections and its mounts, in a folder of its own.
//   connect NAME DEVICE NSID NQN ADDRESS UUID|- [iface=NIC] [auth] [tls]    a running connection with its
//   device path NAME DEVICE NSID NQN ADDRESS [iface=NIC]                           one more path to that
//   device rdma NAME DEVICE NSID NQN ADDRESS                                       a connection that is not
//   over TCP mount SOURCE TARGET TYPE OPTIONS [FOLDER]    mounted now link FILE TO · file FILE TEXT · ===
//   FILE     the text below, until the next ===
// Other lines before the first === are what is expected; the test knows them.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "tests/support/fake_sysfs.hpp"

namespace spark::test {

inline std::vector<std::string> words_in(const std::string& line) {
  std::vector<std::string> words;
  const std::regex word("\\S+");
  for (std::sregex_iterator at(line.begin(), line.end(), word), end; at != end; ++at)
    words.push_back(at->str());
  return words;
}

class DescribedHost {
 public:
  using Expectation = std::pair<std::vector<std::string>, std::string>;  // the words; all behind the first

  explicit DescribedHost(const std::string& file) {
    const std::string text = read_file(file).value_or("");
    EXPECT_FALSE(text.empty()) << file;
    const std::regex key("(DHHC-1:|NVMeTLSkey-1:|password=)[^\\s\",;]+");
    for (std::sregex_iterator at(text.begin(), text.end(), key), end; at != end; ++at)
      keys_.insert(at->str());
    std::string section, content;
    for (const std::string& line : split(text, '\n')) {
      if (line.starts_with("=== ")) {
        end_section(section, content);
        section = line.substr(4);
      } else if (!section.empty()) {
        content += line + "\n";
      } else if (!line.empty() && !line.starts_with("#")) {
        take(line);
      }
    }
    end_section(section, content.substr(0, content.empty() ? 0 : content.size() - 1));
    if (!host_.has("etc/fstab")) host_.write("etc/fstab", "");
    host_.write("proc/self/mountinfo", mounts_);
  }

  SystemRoot root() const { return host_.root(); }
  const std::set<std::string>& keys() const { return keys_; }
  const std::vector<Expectation>& expectations() const { return expectations_; }

  // Of the topmost mount there; empty: it is no device of a target.
  std::string subsystem_mounted_at(const std::string& target) const {
    const auto source = source_at_.find(target);
    if (source == source_at_.end()) return "nothing";
    const auto device = subsystem_of_.find(source->second);
    return device == subsystem_of_.end() ? "" : device->second;
  }

 private:
  void end_section(const std::string& file, std::string& content) {
    end_section(file, std::string_view(content)), content.clear();
  }
  void end_section(const std::string& file, std::string_view content) {
    if (file.empty()) return;
    std::string text(content);
    if (text.ends_with('\n')) text.pop_back();  // write() ends it
    host_.write(file, text);
    const bool is_script = text.starts_with("#!");
    ::chmod((host_.root() / file).c_str(), is_script ? 0755 : 0644);
  }

  void take(const std::string& line) {
    const auto words = words_in(line);
    const std::string& kind = words[0];
    if (kind == "connect" || kind == "path" || kind == "rdma") return connect(words);
    if (kind == "mount") return mount(words);
    if (kind == "link") return link(words[1], words[2]);
    if (kind == "file") return host_.write(words[1], words[2]);
    expectations_.emplace_back(words,
                               words.size() < 2 ? "" : line.substr(line.find(words[1], words[0].size())));
  }

  void link(const std::string& file, const std::string& to) {
    std::filesystem::create_directories((host_.root() / file).parent_path());
    std::filesystem::create_symlink(to, host_.root() / file);
  }

  void connect(const std::vector<std::string>& words) {
    auto controller = tcp_controller(words[1], words[4]);
    controller.portal = {words[5], 4420};
    if (words[0] == "rdma") controller.transport = "rdma";
    for (const std::string& word : words) {
      if (word.starts_with("iface=")) controller.interface = word.substr(6);
      if (word == "auth")
        host_.write(FakeSysfs::controller_folder(words[1]) + "/dhchap_secret", "DHHC-1:00:running:");
      if (word == "auth")
        host_.write(FakeSysfs::controller_folder(words[1]) + "/dhchap_ctrl_secret", "DHHC-1:00:running:");
      if (word == "tls") host_.write(FakeSysfs::controller_folder(words[1]) + "/tls_key", "0c0ffee0");
    }
    host_.add_controller(controller);
    const auto number = static_cast<std::uint32_t>(std::stoul(words[3]));
    host_.add_node(words[1], words[2], number);
    host_.add_head(words[2], number, "259:" + words[2].substr(4, 1), 1 << 20);
    if (words[0] != "rdma") subsystem_of_["/dev/" + words[2]] = words[4];
    if (words[0] == "connect" && words[6] != "-") link("dev/disk/by-uuid/" + words[6], "../../" + words[2]);
  }

  void mount(const std::vector<std::string>& words) {
    const std::string id = std::to_string(30 + ++last_), options = words[4].substr(0, 2);
    mounts_ += id + " 1 259:" + std::to_string(last_) + " " + (words.size() > 5 ? words[5] : "/") + " " +
               words[2] + " " + words[4] + " shared:" + id + " - " + words[3] + " " + words[1] + " " +
               options + "\n";
    const std::string target = std::regex_replace(words[2], std::regex("\\\\040"), " ");
    source_at_[target] = words.size() > 5 ? "a part of " + words[1] : words[1];
  }

  FakeSysfs host_;
  std::set<std::string> keys_;
  std::vector<Expectation> expectations_;
  std::string mounts_ = "21 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n";
  std::map<std::string, std::string> source_at_, subsystem_of_;
  int last_ = 0;
};

}  // namespace spark::test
