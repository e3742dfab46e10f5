#include "migration/survey/mount_units.hpp"

namespace spark::host {

FstabLine parse_mount_unit(std::string_view text) {
  FstabLine line;
  for (const auto& [key, value] : unit_settings(text)) {
    if (key == "What") line.source = value;
    if (key == "Where") line.mount = plain_mount_point(value);
    if (key == "Type") line.type = value;
    if (key == "Options") line.options += (line.options.empty() ? "" : ",") + value;
  }
  return line;
}

std::vector<MountUnit> read_mount_units(const LocalFiles& files) {
  std::vector<MountUnit> units;
  const auto automounts = read_unit_files(files, ".automount");
  for (auto& [unit, text] : read_unit_files(files, ".mount")) {
    FstabLine line = parse_mount_unit(text);
    if (line.mount.empty() || line.source.empty()) continue;
    const std::string name = unit.name.substr(0, unit.name.rfind('.')) + ".automount";
    MountUnit found{std::move(line), {unit}};
    for (const auto& [automount, ignored] : automounts) {
      if (automount.name == name) found.units.push_back(automount);
    }
    units.push_back(std::move(found));
  }
  return units;
}

}  // namespace spark::host
