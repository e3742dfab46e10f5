#include "bench/record/gates.hpp"

#include <gmock/gmock.h>

#include "tests/unit/bench/sample_record.hpp"

namespace spark::bench {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Cell read_cell(std::optional<Bytes> from_storage) {
  Cell cell = valid_cell("nfs", "samples", 1, 1'000'000'000, 1000, {});
  cell.origin = {from_storage, "NFS mount", std::nullopt};
  return cell;
}

const ScenarioRecord kCold{"samples", "", "", false, false, Cache::Cold};
const ScenarioRecord kWarm{"epoch-2", "", "", false, false, Cache::Warm};
const ScenarioRecord kDirect{"shards", "", "", false, false, Cache::Direct};
const ScenarioRecord kWrite{"checkpoint", "", "", true, false, Cache::Direct};

TEST(Gates, AColdReadIsProvenByTheBytesReadFromTheStorage) {
  EXPECT_THAT(cache_faults(read_cell(998'000'000), kCold, PathKind::Nas), IsEmpty());
  EXPECT_THAT(cache_faults(read_cell(1'300'000'000), kCold, PathKind::Nas), IsEmpty()) << "read-ahead";
  EXPECT_THAT(cache_faults(read_cell(940'000'000), kCold, PathKind::Nas),
              Contains("not cold: only 94.0 % of it came from the storage (NFS mount)"));
  EXPECT_THAT(cache_faults(read_cell(0), kCold, PathKind::Nas), Contains(HasSubstr("RAM served it")));
}

TEST(Gates, WithoutACounterAColdReadIsNotProven) {
  EXPECT_THAT(cache_faults(read_cell(std::nullopt), kCold, PathKind::Local),
              Contains(HasSubstr("not proven")));
  EXPECT_THAT(cache_faults(read_cell(std::nullopt), kDirect, PathKind::Nas),
              Contains(HasSubstr("not proven")));
  EXPECT_THAT(cache_faults(read_cell(std::nullopt), kDirect, PathKind::Memory), IsEmpty());
}

TEST(Gates, ADirectReadMustReachTheStorageAndAWriteIsNotChecked) {
  EXPECT_THAT(cache_faults(read_cell(100), kDirect, PathKind::RemoteBlock),
              Contains(HasSubstr("not from the storage")));
  EXPECT_THAT(cache_faults(read_cell(0), kWrite, PathKind::RemoteBlock), IsEmpty());
  EXPECT_THAT(cache_faults(read_cell(0), kWarm, PathKind::Nas), IsEmpty()) << "RAM is what it is about";
}

TEST(Gates, ARereadServedByRamIsLabelledAsSuchAndNeverAsCold) {
  const Cell ram = read_cell(0);
  const Cell half = read_cell(500'000'000);
  const Cell all = read_cell(1'000'000'000);
  EXPECT_EQ(cache_label({&ram}, Cache::Warm), "served by RAM");
  EXPECT_EQ(cache_label({&half}, Cache::Warm), "partly RAM, 50.0 % from storage");
  EXPECT_EQ(cache_label({&all}, Cache::Warm), "cold 100 %");
  EXPECT_EQ(cache_label({&all}, Cache::Cold), "cold 100 %");
  EXPECT_EQ(cache_label({&ram}, Cache::Direct), "direct");
  const Cell unknown = read_cell(std::nullopt);
  EXPECT_EQ(cache_label({&unknown}, Cache::Warm), "not proven");
}

TEST(Gates, AReconnectDuringACellIsReported) {
  EXPECT_THAT(change_faults("ro; nvme1 live", "ro; nvme1 live"), IsEmpty());
  EXPECT_THAT(change_faults("ro; nvme1 live", "ro; nvme1 connecting"),
              Contains(HasSubstr("nvme1 connecting")));
}

TEST(Gates, AHostWithoutSpareCpuTimeCausesACaution) {
  CpuUse use;
  use.idle_share = 0.05;
  EXPECT_THAT(starvation_cautions(use, false), Contains(HasSubstr("no CPU time left")));
  use.idle_share = 0.9;
  use.busiest_core = 1;
  EXPECT_THAT(starvation_cautions(use, false), IsEmpty());
  EXPECT_THAT(starvation_cautions(use, true), Contains(HasSubstr("one core")));
}

TEST(Gates, ATooShortReadIsInvalid) {
  EXPECT_THAT(length_faults(0.09), Contains(HasSubstr("90 ms")));
  EXPECT_THAT(length_faults(0.11), IsEmpty());
}

TEST(Gates, FasterThanTheLinkIsImplausible) {
  Record record = sample_record();
  record.paths[0].storage.nic.bytes_per_second = 2.9e9;  // rounds of 2.5 and 3.0 GB/s
  apply_plausibility(record);
  EXPECT_EQ(summarize(record, "nvme-tcp", "shards").rates, std::vector<double>{2.5e9});
  EXPECT_THAT(summarize(record, "nvme-tcp", "shards").reasons,
              Contains(HasSubstr("implausible: faster than enp1s0f1np1")));
}

TEST(Gates, ANetworkLatencyBelowTheLocalDrivesIsInvalid) {
  Record record = sample_record();
  record.cells.push_back(valid_cell("nvme-tcp", "latency", 4, 80'000'000, 20'000, {{60'000, 20'000}}));
  apply_plausibility(record);
  EXPECT_EQ(summarize(record, "nvme-tcp", "latency").status, CellStatus::Invalid);
  EXPECT_EQ(summarize(record, "local", "latency").status, CellStatus::Valid);
}

TEST(Gates, ANetworkMayAnswerSoonerThanAHardDiskBesideTheLocalDrive) {
  Record record = sample_record();
  PathRecord disk = record.paths[1];
  disk.name = "disk";
  record.paths.insert(record.paths.begin(), disk);
  record.cells.push_back(valid_cell("disk", "latency", 1, 80'000'000, 20'000, {{8'000'000, 20'000}}));
  record.cells.push_back(valid_cell("nvme-tcp", "latency", 4, 80'000'000, 20'000, {{160'000, 20'000}}));
  apply_plausibility(record);
  EXPECT_EQ(summarize(record, "nvme-tcp", "latency").status, CellStatus::Valid);
}

TEST(Gates, TheShareOfFilesOpenedWithoutAskingTheNfsServerIsReported) {
  Record record;
  for (unsigned round = 0; round < 3; ++round) {
    Cell cell = valid_cell("nfs", "smallfiles", round, 1'000'000, 100, {});
    cell.ios = 100;
    cell.opens = round == 0 ? 0 : 100;
    record.cells.push_back(cell);
  }
  record.cells.push_back(valid_cell("local", "smallfiles", 1, 1'000'000, 100, {}));
  EXPECT_EQ(delegation_words(record, "nfs"), "") << "the warm-up does not count";
  EXPECT_EQ(delegation_words(record, "local"), "");
  record.cells[1].opens = 20;
  EXPECT_THAT(delegation_words(record, "nfs"), HasSubstr("opened 40.0 % of them without asking the server"));
}

TEST(Gates, ALastingSlowdownIsASlumpAndABriefDipIsNot) {
  const double fast = 5e9, slow = 1.5e9;
  const auto words = [](const std::vector<double>& rates) { return slump_words(rates, std::nullopt); };
  EXPECT_EQ(words({fast, fast, fast, fast, slow, slow, slow, slow}).substr(0, 53),
            "writing fell from 5.00 GB/s to 1.50 GB/s after 4 s: t");
  EXPECT_EQ(words({fast, fast, fast, slow, slow, fast, fast, fast}), "");
  EXPECT_EQ(words({fast, fast, fast, 0.9 * fast, 0.8 * fast, 0.9 * fast}), "");
  EXPECT_EQ(words({fast, slow}), "") << "too short to say";
}

TEST(Gates, TheTemperatureDistinguishesAHotDriveFromAFullCache) {
  const std::vector<double> rates = {5e9, 5e9, 5e9, 1e9, 1e9, 1e9};
  EXPECT_NE(slump_words(rates, DriveTemperature{84, 82}).find("at 84 °C of 82 °C, so it was too hot"),
            std::string::npos);
  EXPECT_NE(
      slump_words(rates, DriveTemperature{52, 82}).find("so its fast (SLC) cache was full, most likely"),
      std::string::npos);
  EXPECT_NE(slump_words(rates, DriveTemperature{52, 0}).find("was full, or it was hot"), std::string::npos);
  EXPECT_NE(heat_words(DriveTemperature{84, 82}).find("slows down from 82 °C on"), std::string::npos);
  EXPECT_EQ(heat_words(DriveTemperature{52, 82}), "");
  EXPECT_EQ(heat_words(std::nullopt), "");
}

}  // namespace
}  // namespace spark::bench
