#include "bench/facts/temperature.hpp"

#include <cstdlib>
#include <vector>

#include "base/file.hpp"

namespace spark::bench {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders_in(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  for (const fs::path& entry : list_folder(folder)) {
    if (entry.filename().string().starts_with(prefix)) found.push_back(entry);
  }
  return found;
}

// The sysfs value is in thousandths of a degree Celsius.
std::optional<double> degrees(const fs::path& file) {
  const auto text = read_line_file(file);
  if (!text || text->empty()) return std::nullopt;
  return std::strtod(text->c_str(), nullptr) / 1000;
}

// The sensors of a drive's controller are in hwmonN or in hwmon/hwmonN.
std::optional<DriveTemperature> sensor_of(const fs::path& controller) {
  std::vector<fs::path> sensors = folders_in(controller / "hwmon", "hwmon");
  for (fs::path& sensor : folders_in(controller, "hwmon")) sensors.push_back(std::move(sensor));
  for (const fs::path& sensor : sensors) {
    const auto celsius = degrees(sensor / "temp1_input");
    if (celsius) return DriveTemperature{*celsius, degrees(sensor / "temp1_max").value_or(0)};
  }
  return std::nullopt;
}

// The device of a block device; for a partition, that of its whole drive. With native multipath it is the
// subsystem, which contains the controllers.
std::vector<fs::path> controllers_of(const SystemRoot& root, const std::string& device) {
  std::error_code error;
  fs::path block = fs::canonical(root / "sys/class/block" / device, error);
  if (error) return {};
  if (fs::exists(block / "partition", error)) block = block.parent_path();
  std::vector<fs::path> controllers = {block / "device"};
  for (fs::path& inner : folders_in(block / "device", "nvme")) controllers.push_back(std::move(inner));
  for (const fs::path& below : folders_in(block / "slaves", "")) {
    for (fs::path& inner : controllers_of(root, below.filename().string()))
      controllers.push_back(std::move(inner));
  }
  return controllers;
}

}  // namespace

std::optional<DriveTemperature> drive_temperature(const SystemRoot& root, const StorageFacts& storage) {
  if (storage.kind != PathKind::Local || storage.origin.device.empty()) return std::nullopt;
  std::optional<DriveTemperature> hottest;
  for (const fs::path& controller : controllers_of(root, storage.origin.device)) {
    const auto one = sensor_of(controller);
    if (one && (!hottest || one->celsius > hottest->celsius)) hottest = one;
  }
  return hottest;
}

}  // namespace spark::bench
