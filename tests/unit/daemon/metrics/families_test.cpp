#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <fstream>

#include "daemon/metrics/families.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr WallTime kThen{std::chrono::seconds(1'700'000'000)};

std::string text_of(const VolumeFacts& volume) {
  Page page;
  add_volumes(page, {volume});
  return to_text(page);
}

class VolumeMetrics : public testing::Test {
 protected:
  VolumeMetrics() {
    settings.name = "datasets";
    settings.nvme = config::NvmeSource{"rose", "raid5-data", 1, "", ""};
    settings.mount = "/mnt/a\"b";
    status.state = volumes::State::Stalled;
    status.since = kThen;
  }
  std::string text() const { return text_of({&settings, &status}); }

  config::Volume settings;
  volumes::Status status;
};

TEST_F(VolumeMetrics, StateIsOneHot) {
  const std::string page = text();
  EXPECT_THAT(page, HasSubstr("# TYPE spark_stage_volume_state gauge\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_volume_state{volume=\"datasets\",state=\"stalled\"} 1\n"));
  for (const char* other :
       {"waiting", "connecting", "mounting", "ready", "lost", "recovering", "refused", "leaving", "down"}) {
    EXPECT_THAT(page, HasSubstr(std::string("state=\"") + other + "\"} 0\n"));
  }
  EXPECT_THAT(
      page, HasSubstr("spark_stage_volume_state_change_timestamp_seconds{volume=\"datasets\"} 1700000000\n"));
}

TEST_F(VolumeMetrics, LabelValuesAreEscaped) {
  EXPECT_THAT(text(), HasSubstr(R"(mount="/mnt/a\"b")"));
}

TEST_F(VolumeMetrics, OutagesAreCountedAndTheDurationOfTheLastIsShown) {
  EXPECT_THAT(text(), HasSubstr("spark_stage_volume_outages_total{volume=\"datasets\"} 0\n"));
  EXPECT_THAT(text(), Not(HasSubstr("spark_stage_volume_last_outage_seconds{")));
  status.history.outage_begins(kThen, "link down");
  status.history.outage_ends(kThen + std::chrono::seconds(7), volumes::Healer::Kernel);
  status.history.outage_begins(kThen + std::chrono::seconds(9), "gone");
  const std::string page = text();
  EXPECT_THAT(page, HasSubstr("spark_stage_volume_outages_total{volume=\"datasets\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_volume_reconnects_total{volume=\"datasets\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_volume_recoveries_total{volume=\"datasets\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_volume_last_outage_seconds{volume=\"datasets\"} 7\n"));
}

TEST_F(VolumeMetrics, ProbeTimesAreASummaryInSeconds) {
  for (const double us : {1'000.0, 2'000.0, 250'000.0}) status.probes.add(us);
  const std::string page = text();
  EXPECT_THAT(page, HasSubstr("# TYPE spark_stage_volume_probe_seconds summary\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_volume_probe_seconds_count{volume=\"datasets\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_volume_probe_seconds_sum{volume=\"datasets\"} 0.253\n"));
  EXPECT_THAT(page, HasSubstr("quantile=\"0.5\"} 0.002\n"));
  EXPECT_THAT(page, HasSubstr("quantile=\"0.99\"} 0.25\n"));
}

TEST_F(VolumeMetrics, TwoControllersToOneAddressCountAsOnePath) {
  status.paths = {{"nvme3", "10.0.0.5:4420", "connecting", ""},
                  {"nvme4", "10.0.0.5:4420", "live", ""},
                  {"", "10.0.1.5:4420", "waiting", "no route"}};
  const std::string page = text();
  EXPECT_THAT(page, HasSubstr("path_up{volume=\"datasets\",address=\"10.0.0.5:4420\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("path_up{volume=\"datasets\",address=\"10.0.1.5:4420\"} 0\n"));
  EXPECT_EQ(page.find("10.0.0.5"), page.rfind("10.0.0.5"));
}

std::string text_of(const DatasetFacts& facts) {
  Page page;
  add_datasets(page, facts);
  return to_text(page);
}

TEST(DatasetMetrics, AnUnreadableCacheHasNoValuesInsteadOfZeros) {
  const std::string page = text_of(DatasetFacts{});
  EXPECT_THAT(page, HasSubstr("spark_stage_cache_up 0\n"));
  EXPECT_THAT(page, HasSubstr("# TYPE spark_stage_cache_used_bytes gauge\n"));
  EXPECT_THAT(page, Not(HasSubstr("\nspark_stage_cache_used_bytes ")));
  EXPECT_THAT(page, Not(HasSubstr("\nspark_stage_datasets{")));
}

TEST(OutputMetrics, OutputsAreCountedByResultAndTheBacklogIsShown) {
  OutputFacts facts;
  facts.totals.sent = 3;
  facts.totals.failed = 1;
  facts.totals.sent_bytes = 141'000'000'000;
  facts.backlog = {2, 5};
  Page families;
  add_outputs(families, facts);
  const std::string page = to_text(families);
  EXPECT_THAT(page, HasSubstr("spark_stage_stage_outs_total{result=\"sent\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_stage_outs_total{result=\"failed\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_stage_outs_total{result=\"cancelled\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_stage_out_sent_bytes_total 141000000000\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_stage_outs_pending 2\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_stage_out_backlog_bytes 5\n"));
}

TEST(DatasetMetrics, DatasetsAreCountedByState) {
  DatasetFacts facts;
  facts.list =
      json::parse(
          R"({"datasets": [{"state": "ready"}, {"state": "ready"}, {"state": "failed"}, {"state": "live"}]})")
          .as_object();
  facts.cache = {
      {"capacity_bytes", 4'000'000'000'000}, {"used_bytes", 1}, {"free_bytes", 2}, {"free_inodes", nullptr}};
  facts.leases = 2;
  const std::string page = text_of(facts);
  EXPECT_THAT(page, HasSubstr("spark_stage_datasets{state=\"ready\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_datasets{state=\"failed\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_datasets{state=\"live\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_datasets{state=\"absent\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_cache_up 1\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_cache_capacity_bytes 4000000000000\n"));
  EXPECT_THAT(page, Not(HasSubstr("\nspark_stage_cache_free_inodes ")));
  EXPECT_THAT(page, HasSubstr("spark_stage_leases 2\n"));
}

TEST(DatasetMetrics, StagingsAreCountedByResultAndEvictionsByReason) {
  DatasetFacts facts;
  facts.totals.copied = 3;
  facts.totals.copied_bytes = 1'234'567'890'123;
  facts.totals.copied_seconds = 12.5;
  facts.totals.failed = 1;
  facts.totals.evicted_for_room = 4;
  facts.totals.found_damaged = 5;
  const std::string page = text_of(facts);
  EXPECT_THAT(page, HasSubstr("spark_stage_stagings_total{result=\"copied\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_stagings_total{result=\"failed\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_staging_copied_bytes_total 1234567890123\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_staging_copied_seconds_total 12.5\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_cache_evictions_total{reason=\"room\"} 4\n"));
  EXPECT_THAT(page, HasSubstr("spark_stage_cache_verifications_total{result=\"damaged\"} 5\n"));
}

TEST(DaemonMetrics, WorkersAndTheLastReloadAreShown) {
  DaemonFacts facts;
  facts.workers.started = 9;
  facts.workers.running = 2;
  facts.abandoned_now = 1;
  facts.last_reload_worked = false;
  facts.config_loaded = kThen;
  Page page;
  add_daemon(page, facts);
  const std::string text = to_text(page);
  EXPECT_THAT(text, HasSubstr("spark_stage_build_info{version=\""));
  EXPECT_THAT(text, HasSubstr("spark_stage_workers{state=\"running\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("spark_stage_workers{state=\"abandoned\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("spark_stage_workers_started_total 9\n"));
  EXPECT_THAT(text, HasSubstr("spark_stage_config_last_reload_successful 0\n"));
  EXPECT_THAT(text, HasSubstr("spark_stage_config_last_reload_success_timestamp_seconds 1700000000\n"));
}

TEST(ProcessMetrics, AreReadDespiteSpacesAndParenthesesInTheProgramName) {
  const test::TempFolder folder;
  std::filesystem::create_directories(folder.path() / "proc/self/fd");
  for (const char* name : {"0", "1", "7"}) std::ofstream(folder.path() / "proc/self/fd" / name) << "";
  std::ofstream(folder.path() / "proc/self/stat") << "12 (odd) 1 name) S 1 12 12 0 -1 4194560 1 0 0 0 150 50 "
                                                     "0 0 20 0 1 0 2500 8192000 300 18446744073709551615\n";
  std::ofstream(folder.path() / "proc/stat") << "cpu 1 2\nbtime 1700000000\nprocesses 5\n";
  Page page;
  add_process(page, SystemRoot{folder.path()});
  const std::string text = to_text(page);
  ASSERT_EQ(::sysconf(_SC_CLK_TCK), 100);
  EXPECT_THAT(text, HasSubstr("\nprocess_cpu_seconds_total 2\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_start_time_seconds 1700000025\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_virtual_memory_bytes 8192000\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_resident_memory_bytes " +
                              std::to_string(300 * ::sysconf(_SC_PAGESIZE)) + "\n"));
  EXPECT_THAT(text, HasSubstr("\nprocess_open_fds 3\n"));
}

TEST(ProcessMetrics, AreOmittedIfProcCannotBeRead) {
  const test::TempFolder folder;
  Page page;
  add_process(page, SystemRoot{folder.path()});
  EXPECT_THAT(to_text(page), Not(HasSubstr("\nprocess_cpu_seconds_total ")));
}

TEST(FleetMetrics, ServingIsShownByPeerAndRefusalsByReason) {
  Page page;
  add_fleet(page, nullptr);
  EXPECT_TRUE(page.empty());
  add_fleet(page, json::parse(R"({"serving": true, "buffers_in_use": 3,
    "peers": [{"name": "spark2", "answers": true}, {"name": "spark3", "answers": false}],
    "clients": [{"name": "spark2", "bytes": 10, "failures": 1}, {"name": "spark2", "bytes": 5, "failures": 0}],
    "refused_by": {"unlisted": 2, "key": 0, "share": 1}})"));
  const std::string text = to_text(page);
  for (const char* line : {"spark_stage_fleet_serving 1", "spark_stage_fleet_buffers_in_use 3",
                           "spark_stage_fleet_peer_up{peer=\"spark3\"} 0",
                           "spark_stage_fleet_served_bytes_total{peer=\"spark2\"} 15",
                           "spark_stage_fleet_served_bytes_total{peer=\"spark3\"} 0",
                           "spark_stage_fleet_failures_total{peer=\"spark2\"} 1",
                           "spark_stage_fleet_refused_connections_total{reason=\"unlisted\"} 2"})
    EXPECT_THAT(text, HasSubstr(std::string(line) + "\n"));
}

}  // namespace
}  // namespace spark::metrics
