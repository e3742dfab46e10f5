#include "bench/facts/mount_facts.hpp"

#include <sys/sysmacros.h>

#include <algorithm>
#include <vector>

#include "base/text.hpp"

namespace spark::bench {
namespace {

struct Line {
  std::string device;  // "major:minor"
  MountFacts facts;
};

// Mount options first, then the superblock options that are not among them.
std::string all_options(const std::string& of_mount, const std::string& of_super) {
  std::vector<std::string> options = split(of_mount, ',');
  const bool read_only_mount = std::find(options.begin(), options.end(), "ro") != options.end();
  for (const std::string& option : split(of_super, ',')) {
    if (option == "rw" && read_only_mount) continue;
    if (std::find(options.begin(), options.end(), option) == options.end()) options.push_back(option);
  }
  return join(options, ",");
}

// "36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/root rw,errors=continue"
std::optional<Line> parse_line(std::string_view text) {
  const std::vector<std::string> fields = split(text, ' ');
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (dash - fields.begin() < 6 || fields.end() - dash < 4) return std::nullopt;
  Line line;
  line.device = fields[2];
  line.facts.mount_point = decode_octal(fields[4]);
  line.facts.type = decode_octal(dash[1]);
  line.facts.source = decode_octal(dash[2]);
  line.facts.options = all_options(decode_octal(fields[5]), decode_octal(dash[3]));
  return line;
}

bool holds(std::string_view mount_point, std::string_view path) {
  return mount_point == "/" || is_at_or_below(path, mount_point);
}

}  // namespace

std::optional<MountFacts> find_mount(std::string_view mountinfo, std::string_view path,
                                     std::uint64_t device) {
  const std::string wanted = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  std::optional<Line> best;
  for (const std::string& text : split(mountinfo, '\n')) {
    auto line = parse_line(text);
    if (!line || !holds(line->facts.mount_point, path)) continue;
    const auto rank = [&](const Line& of) {
      return std::pair(of.device == wanted, of.facts.mount_point.size());
    };
    if (!best || rank(*line) >= rank(*best)) best = std::move(line);
  }
  if (!best) return std::nullopt;
  return std::move(best->facts);
}

}  // namespace spark::bench
