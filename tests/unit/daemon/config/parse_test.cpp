#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "daemon/config/parse.hpp"
#include "daemon/workers/messages.hpp"

namespace spark::config {
namespace {

using namespace std::chrono_literals;

// The reference configuration of the contract.
constexpr char kReference[] = R"(version: 1
targets:
  rose:
    address: 192.168.0.100        # a comment
    port: 4420
    interface: enp1s0f1np1
    io_queues: auto
    keep_alive: 5s
    reconnect_delay: 2s
    controller_loss: never
    fast_fail: off
    digests: {header: false, data: true}
    auth: {host_key_file: /etc/spark-stage/keys/host, controller_key_file: /etc/spark-stage/keys/ctrl}
    tls: {psk_file: /etc/spark-stage/keys/psk}
  two:
    portals: [10.0.0.1, "10.0.0.2:4421", "[fd00::2]:4422", nas.lan, fd00::3]
    port: 4430
    io_queues: 4
    controller_loss: 10m
    fast_fail: 5s
volumes:
  datasets:
    target: rose
    subsystem: raid5-data
    namespace: 1
    filesystem: {type: ext4, uuid: 2F7C1C0E-8d0b-4c39-9e0a-3f6c2b7d5a10}
    mount: /mnt/rosa-storage
    access: read-only
    options: [noatime]
  scratch:
    target: two
    subsystem: nqn.2026-01.io.spark:t1
    mount: /mnt/scratch
    access: exclusive
    fence: mmp
  nas:
    nfs: 192.168.0.98:/data/shared/
    mount: /mnt/dell-shared
    options: [vers=4.2, nconnect=8]
cache:
  path: /var/lib/spark-stage/cache
  capacity: 2TiB
  keep_free: 5%
  scrub: off
  yield: false
  page_cache: drop
  threads: 12
  depth: auto
  chunk: 1MiB
datasets:
  imagenet: {volume: datasets, path: imagenet/, exclude: ["*.tmp"], links: copy}
  models:   {path: /srv/models, env: MODELS, namespaces: [team-a, b2]}
  llama:    {path: /srv/hub, model: meta-llama/Llama-3.1-8B, revision: refs/pr/1, include: ["*.json"],
             check: complete, expect: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
  qwen:     {volume: datasets, path: hub, model: "qwen3:8b-q4_K_M"}
metrics: {listen: "[::1]:9464"}
)";

Config reference() {
  auto config = parse(kReference, "reference.yaml");
  EXPECT_TRUE(config) << config.error().message();
  return config ? *config : Config{};
}

TEST(Config, TheReferenceConfigurationIsReadCompletely) {
  const Config config = reference();
  ASSERT_EQ(config.targets.size(), 2u);
  const Target& rose = config.targets.at("rose");
  EXPECT_EQ(rose.portals, (std::vector<nvmetcp::Portal>{{"192.168.0.100", 4420}}));
  EXPECT_EQ(rose.options.interface, "enp1s0f1np1");
  EXPECT_EQ(rose.options.io_queues, 0u);
  EXPECT_EQ(rose.options.keep_alive, 5s);
  EXPECT_EQ(rose.options.controller_loss, std::nullopt);
  EXPECT_EQ(rose.options.fast_fail, std::nullopt);
  EXPECT_FALSE(rose.options.header_digest);
  EXPECT_TRUE(rose.options.data_digest);
  EXPECT_EQ(rose.options.controller_key_file, "/etc/spark-stage/keys/ctrl");
  EXPECT_EQ(rose.options.tls_psk_file, "/etc/spark-stage/keys/psk");
  ASSERT_EQ(config.volumes.size(), 3u);
  const Volume& datasets = config.volumes[0];
  EXPECT_EQ(datasets.nvme->filesystem_uuid, "2f7c1c0e-8d0b-4c39-9e0a-3f6c2b7d5a10");
  EXPECT_EQ(datasets.nvme->nsid, 1u);
  EXPECT_EQ(datasets.access, Access::ReadOnly);
  EXPECT_EQ(config.volumes[1].fence, Fence::Mmp);
  EXPECT_EQ(config.volumes[2].nfs, (NfsSource{"192.168.0.98", "/data/shared"}));
  EXPECT_THAT(config.volumes[2].options, testing::ElementsAre("vers=4.2", "nconnect=8"));
  EXPECT_EQ(config.cache.capacity, (Amount{2 * kTiB, 0}));
  EXPECT_EQ(config.cache.keep_free, (Amount{0, 5}));
  EXPECT_FALSE(config.cache.scrub);
  EXPECT_FALSE(config.cache.yield);
  EXPECT_EQ(config.cache.page_cache, PageCache::Drop);
  EXPECT_EQ(config.cache.engine, (EngineSettings{12, 0, kMiB}));
  EXPECT_EQ(config.datasets.at("imagenet").path, "imagenet");
  EXPECT_EQ(config.datasets.at("models").env, "MODELS");
  EXPECT_FALSE(config.datasets.at("models").model);
  EXPECT_EQ(config.datasets.at("llama").model, (ModelSettings{"meta-llama/Llama-3.1-8B",
                                                              "refs/pr/1",
                                                              {"*.json"},
                                                              ModelCheck::Complete,
                                                              "sha256:" + std::string(64, '0')}));
  EXPECT_EQ(config.datasets.at("qwen").model, ModelSettings{"qwen3:8b-q4_K_M"});
  EXPECT_EQ(config.datasets.at("models").namespaces, (std::vector<std::string>{"team-a", "b2"}));
  EXPECT_TRUE(config.datasets.at("imagenet").namespaces.empty());
}

TEST(Config, PortalsInheritTheTargetsPortUnlessTheyHaveTheirOwn) {
  const std::vector<nvmetcp::Portal> wanted = {
      {"10.0.0.1", 4430}, {"10.0.0.2", 4421}, {"fd00::2", 4422}, {"nas.lan", 4430}, {"fd00::3", 4430}};
  EXPECT_EQ(reference().targets.at("two").portals, wanted);
}

TEST(Config, OmittedKeysHaveTheirDefaults) {
  const auto config = parse(
      "version: 1\ntargets: {t: {address: h}}\nvolumes: {v: {target: t, subsystem: s, mount: /mnt/v}}\n",
      "c");
  ASSERT_TRUE(config) << config.error().message();
  Target wanted;
  wanted.name = "t";
  wanted.portals = {{"h", 4420}};
  EXPECT_EQ(config->targets.at("t"), wanted);
  EXPECT_EQ(config->volumes[0].nvme->nsid, 1u);
  EXPECT_EQ(config->cache.path, "/var/lib/spark-stage/cache");
  EXPECT_EQ(config->cache.keep_free, (Amount{0, 5}));
  EXPECT_EQ(config->cache.scrub, std::chrono::hours(30 * 24));
  EXPECT_TRUE(config->cache.yield);
  EXPECT_EQ(config->cache.page_cache, PageCache::Auto);
}

TEST(Config, MetricsHaveNoPortUnlessAnAddressIsGiven) {
  EXPECT_EQ(reference().metrics.listen, (nvmetcp::Portal{"::1", 9464}));
  EXPECT_EQ(parse("version: 1\nmetrics: {listen: off}\n", "c")->metrics.listen, std::nullopt);
  EXPECT_EQ(parse("version: 1\n", "c")->metrics.listen, std::nullopt);
}

TEST(Config, SectionsMayBeAbsentOrEmpty) {
  EXPECT_TRUE(parse("version: 1\n", "c"));
  EXPECT_TRUE(parse("version: 1\ntargets:\nvolumes:\n  # none yet\ndatasets: {}\n", "c"));
}

TEST(Config, TheShownConfigurationIsParsedBackUnchanged) {
  const Config config = reference();
  const std::string yaml = to_yaml(config);
  auto again = parse(yaml, "shown.yaml");
  ASSERT_TRUE(again) << again.error().message() << "\n" << yaml;
  again->file = config.file;
  EXPECT_EQ(*again, config) << yaml;
}

TEST(Config, EveryConnectOptionIsReadAndShown) {
  const auto config = parse(
      "version: 1\ntargets: {t: {address: h, interface: eth1, io_queues: 3, keep_alive: 7s, reconnect_delay: "
      "3s,\n"
      "  controller_loss: 60s, fast_fail: 9s, io_policy: numa, digests: {header: true, data: true},\n"
      "  auth: {host_key_file: /h, controller_key_file: /c}, tls: {psk_file: /p}}}\n",
      "c");
  ASSERT_TRUE(config) << config.error().message();
  const json::object set = to_message(config->targets.at("t").options);
  const json::object defaults = to_message(nvmetcp::ConnectOptions{});
  for (const auto& [field, value] : defaults) EXPECT_NE(set.at(field), value) << field;
  EXPECT_EQ(parse(to_yaml(*config), "c")->targets, config->targets);
}

TEST(Config, ShownYamlQuotesSpecialCharacters) {
  const auto config = parse(
      "version: 1\ntargets: {t: {address: h}}\n"
      "volumes: {v: {target: t, subsystem: 'a: #b \"c\" \\', mount: '/mnt/with space'}}\n",
      "c");
  ASSERT_TRUE(config) << config.error().message();
  const auto again = parse(to_yaml(*config), "c");
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->volumes, config->volumes);
  EXPECT_EQ(again->volumes[0].nvme->subsystem, "a: #b \"c\" \\");
}

TEST(Config, ShownJsonHasEveryDefaultAndNoEmptyKeys) {
  const json::object shown = to_json(*parse("version: 1\ntargets: {t: {address: h}}\n", "c"));
  const json::value wanted = json::parse(R"({"version": 1, "targets": {"t": {"portals": ["h:4420"],
      "io_queues": "auto", "keep_alive": "5s", "reconnect_delay": "2s", "controller_loss": "never",
      "fast_fail": "off", "io_policy": "kernel", "digests": {"header": false, "data": false}}}, "volumes": {},
      "cache": {"path": "/var/lib/spark-stage/cache", "capacity": "100%", "keep_free": "5%",
                "scrub": "2592000s", "yield": true, "page_cache": "auto", "threads": "auto", "depth": "auto",
                "chunk": "auto", "options": []}, "datasets": {}, "metrics": {"listen": "off"}})");
  EXPECT_EQ(json::value(shown), wanted) << pretty(shown);
}

TEST(ConfigFile, AMissingFileIsNotFoundAndTheErrorSaysHowToCreateIt) {
  const auto config = load("/nowhere/spark-stage.yaml");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().kind, Errc::NotFound);
  EXPECT_THAT(config.error().message(), testing::HasSubstr("discover ADDRESS --yaml"));
}

TEST(ConfigFile, IsReadFromDiskAndKeepsItsPath) {
  const std::string file = testing::TempDir() + "spark-config-test.yaml";
  std::ofstream(file) << kReference;
  const auto config = load(file);
  std::filesystem::remove(file);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->file, file);
}

TEST(FindDataset, ADatasetIsFoundByNameOrByVolumeAndPath) {
  const Config config = reference();
  EXPECT_EQ(find_dataset(config, "models")->path, "/srv/models");
  const auto folder = find_dataset(config, "nas:sets/./coco//2017/");
  ASSERT_TRUE(folder) << folder.error().message();
  EXPECT_EQ(folder->volume, "nas");
  EXPECT_EQ(folder->path, "sets/coco/2017");
  EXPECT_EQ(folder->name, "nas:sets/coco/2017");
  EXPECT_EQ(find_dataset(config, "nas:.")->path, ".");
}

TEST(FindDataset, AnUnknownNameIsNotFoundAndTheNearestIsSuggested) {
  const Config config = reference();
  const auto dataset = find_dataset(config, "imagnet");
  EXPECT_EQ(dataset.error().kind, Errc::NotFound);
  EXPECT_THAT(dataset.error().what, testing::HasSubstr("did you mean 'imagenet'?"));
  const auto volume = find_dataset(config, "dataset:x");
  EXPECT_EQ(volume.error().kind, Errc::NotFound);
  EXPECT_THAT(volume.error().what, testing::HasSubstr("did you mean 'datasets'?"));
}

TEST(FindDataset, APathCannotLeaveItsVolume) {
  const Config config = reference();
  for (const char* name : {"nas:", "nas:/etc", "nas:..", "nas:a/../../b", "nas:a/.."}) {
    const auto dataset = find_dataset(config, name);
    ASSERT_FALSE(dataset) << name;
    EXPECT_EQ(dataset.error().kind, Errc::Invalid) << name;
  }
  EXPECT_TRUE(find_dataset(config, "nas:a..b/...")) << "dots in a name are a name";
}

// A file that named it as `cache.path` would be refused.
TEST(CachePath, IsWhereNothingElseIs) {
  const auto config = parse(
      "version: 1\ntargets: {t: {address: 10.0.0.1}}\nvolumes: {v: {target: t, subsystem: s, mount: "
      "/mnt/v, access: exclusive}}\n"
      "datasets: {a: {path: /srv/a}, b: {volume: v, path: srv}}\n"
      "outputs: {o: {path: /out/o, volume: v, to: o}}\n",
      "c");
  ASSERT_TRUE(config) << config.error().message();
  for (const char* free : {"/drive/cache", "/srv/abc"}) EXPECT_TRUE(check_cache_path(*config, free)) << free;
  const std::pair<const char*, const char*> taken[] = {{"/srv/a/cache", "dataset 'a'"},
                                                       {"/srv/", "dataset 'a'"},
                                                       {"/srv/../srv/a/", "dataset 'a'"},
                                                       {"/mnt/v/cache", "volume 'v'"},
                                                       {"/out/o", "output 'o'"}};
  for (const auto& [path, what] : taken) {
    const auto refused = check_cache_path(*config, path);
    ASSERT_FALSE(refused) << path;
    EXPECT_EQ(refused.error().kind, Errc::Invalid);
    EXPECT_THAT(refused.error().what, testing::HasSubstr(what));
  }
}

TEST(EnvironmentName, IsUpperCaseWithUnderscores) {
  EXPECT_EQ(environment_name("imagenet"), "SPARK_STAGE_IMAGENET");
  EXPECT_EQ(environment_name("nas:sets/coco-2017"), "SPARK_STAGE_NAS_SETS_COCO_2017");
}

}  // namespace
}  // namespace spark::config
