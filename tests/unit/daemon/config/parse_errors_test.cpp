// Error messages for a wrong configuration: each row is a file and a line that must be among the problems.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"

namespace spark::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> problems_of(const std::string& yaml) {
  const auto config = parse(yaml, "c.yaml");
  if (config) return {};
  EXPECT_EQ(config.error().kind, Errc::Invalid);
  return split(config.error().message(), '\n');
}

struct Row {
  std::string yaml;
  std::string problem;
};

std::string target(const std::string& keys) {
  return "version: 1\ntargets: {t: {" + keys + "}}\n";
}

std::string volume(const std::string& keys) {
  return "version: 1\ntargets: {rose: {address: h}}\nvolumes: {v: {" + keys + "}}\n";
}

std::string nvme(const std::string& keys) {
  return volume("target: rose, subsystem: s, mount: /mnt/v, " + keys);
}

const std::string kFleet = "\nfleet: {listen: 10.0.0.1:7789, key_file: /k, peers: {a: [10.0.0.2]}}\n";

std::string dataset(const std::string& keys) {
  return "version: 1\ntargets: {t: {address: h}}\nvolumes: {v: {target: t, subsystem: s, mount: /mnt/v}}\n"
         "datasets: {d: {" +
         keys + "}}\n";
}

std::string output(const std::string& keys) {
  return "version: 1\ntargets: {t: {address: h}}\nvolumes: {v: {target: t, subsystem: s, mount: /mnt/v, "
         "access: exclusive},"
         " r: {target: t, subsystem: r, mount: /mnt/r}}\noutputs: {run7: {" +
         keys + "}}\n";
}

class InvalidConfig : public testing::TestWithParam<Row> {};

TEST_P(InvalidConfig, IsReportedInOneSentence) {
  EXPECT_THAT(problems_of(GetParam().yaml), ElementsAre(HasSubstr(GetParam().problem)));
}

const std::string kHex = "2f7c1c0e-8d0b-4c39-9e0a-3f6c2b7d5a1";

INSTANTIATE_TEST_SUITE_P(
    Document, InvalidConfig,
    testing::Values(Row{"", "c.yaml:1:1: the file is empty"}, Row{"# only a remark\n", "the file is empty"},
                    Row{"targets: {}\n", "c.yaml:1:1: version: is missing; write 'version: 1'"},
                    Row{"version: 2\n", "c.yaml:1:10: version: '2' is not known"},
                    Row{"version: 1\nvolume: {}\n",
                        "c.yaml:2:1: unknown key 'volume'; did you mean 'volumes'?"},
                    Row{"version: 1\nversion: 1\n", "c.yaml:2:1: 'version' is there twice, first in line 1"},
                    Row{"version: 1\ntargets: [a]\n", "targets: has to be a mapping"},
                    Row{"version: 1\n---\nversion: 1\n", "c.yaml:2:1: reading YAML: a second document"},
                    Row{"version: 1\ntargets: {t: {address: h}\n", "reading YAML: "},
                    Row{"version: 1\n\ttargets: 1\n", "reading YAML: "},
                    Row{"version: &a 1\n", "anchors (&x)"}, Row{"version: !!int 1\n", "tags (!x)"},
                    Row{"version: 1\n? [a]\n: b\n", "a key has to be a word"},
                    Row{"version: 1\n#\x04\ntargets: 7\n", "c.yaml:2:1: this line holds a control character"},
                    Row{"version: 1 # \xff\n", "not UTF-8"},
                    Row{std::string("version: 1\0\n", 12), "c.yaml:1:1: this line holds a control character"},
                    Row{std::string(3000, '['), "reading YAML: nested deeper than 16"},
                    Row{std::string((1 << 20) + 1, '#'), "larger than 1 MiB"}));

INSTANTIATE_TEST_SUITE_P(
    Target, InvalidConfig,
    testing::Values(
        Row{target("adress: h, address: h"),
            "c.yaml:2:15: unknown key 'adress' in targets.t; did you mean 'address'?"},
        Row{target("port: 1"), "targets.t.address: is missing"},
        Row{target("address: h, portals: [i]"), "stands beside 'address'"},
        Row{target("portals: []"), "names no portal"}, Row{target("portals: [a, 'a:4420']"), "there twice"},
        Row{target("address: 192.168.0.300"), "neither an IP address nor a host name"},
        Row{target("address: '10.0.0.1:4420'"), "the port has a key of its own"},
        Row{target("address: [h]"), "has to be a single value, not a list"},
        Row{target("address: "), "has to be a single value, not nothing"},
        Row{target("address: 'h,hostnqn=x'"), "neither an IP address nor a host name"},
        Row{target("address: h, port: 0"), "'0' is not a whole number from 1 to 65535"},
        Row{target("address: h, port: 0x1144"), "targets.t.port: '0x1144' is not a whole number"},
        Row{target("address: h, interface: ../../etc"), "not a network interface's name"},
        Row{target("address: h, io_queues: many"), "neither 'auto' nor a number"},
        Row{target("address: h, keep_alive: 5"), "'5' is not a duration"},
        Row{target("address: h, keep_alive: 0s"), "whole seconds from 1s to 3600s"},
        Row{target("address: h, keep_alive: 1500ms"), "whole seconds"},
        Row{target("address: h, reconnect_delay: 0s"), "whole seconds from 1s"},
        Row{target("address: h, reconnect_delay: 10s, controller_loss: 5s"),
            "controller_loss: ends before the first attempt to reconnect; reconnect_delay is 10s"},
        Row{target("address: h, reconnect_delay: 10s, fast_fail: 5s"), "fast_fail: ends before the first"},
        Row{target("address: h, fast_fail: 60s, controller_loss: 30s"), "fast_fail: would never pass"},
        Row{target("address: h, controller_loss: soon"), "or 'never'"},
        Row{target("address: h, fast_fail: false"), "'false' is not a duration"},
        Row{target("address: h, digests: {header: yes}"), "'yes' is not one of true, false"},
        Row{target("address: h, digests: {head: true}"), "did you mean 'header'?"},
        Row{target("address: h, auth: {controller_key_file: /k}"), "host_key_file: is missing"},
        Row{target("address: h, auth: {host_key_file: k}"), "'k' is not an absolute path"},
        Row{target("address: h, tls: {}"), "psk_file: is missing"},
        Row{"version: 1\ntargets: {'a b': {address: h}}\n", "can't be the name of a target"},
        Row{"version: 1\ntargets: {t: h}\n",
            "targets.t: has to be a mapping of keys to values, not a single"}));

INSTANTIATE_TEST_SUITE_P(
    Volume, InvalidConfig,
    testing::Values(Row{volume("mount: /mnt/v, target: rose"), "subsystem: is missing"},
                    Row{volume("mount: /mnt/v, subsystem: s"), "or 'nfs: HOST:/PATH'"},
                    Row{volume("mount: /mnt/v, subsystem: s, target: rosa"),
                        "there is no target 'rosa'; did you mean 'rose'?"},
                    Row{volume("target: rose, subsystem: s"), "mount: is missing"},
                    Row{volume("nfs: 'h:/x', mount: /mnt/v, subsystem: s"),
                        "volumes.v.subsystem: belongs to an NVMe/TCP volume"},
                    Row{volume("nfs: 'h:/x', mount: /mnt/v, fence: none"), "volumes.v.fence: belongs"},
                    Row{volume("nfs: 'h', mount: /mnt/v"), "'h' is not an NFS export"},
                    Row{volume("nfs: 'fd00::1:/x', mount: /mnt/v"), "not an NFS export"},
                    Row{volume("nfs: 'h:/x', mount: /mnt/v, options: [bg]"), "retries indefinitely"},
                    Row{nvme("namespace: 0"), "namespace: '0' is not"},
                    Row{nvme("namespace: 4294967295"), "namespace: '4294967295' is not"},
                    Row{nvme("access: rw"), "'rw' is not one of read-only, exclusive"},
                    Row{nvme("fence: mmp"), "'access: exclusive' only"},
                    Row{nvme("access: exclusive, fence: nome"), "did you mean 'none'?"},
                    Row{nvme("filesystem: {type: ntfs}"), "'ntfs' is not one of ext4, xfs"},
                    Row{nvme("filesystem: {uuid: " + kHex + "}"), "not a file system's UUID"},
                    Row{nvme("filesystem: {uuid: " + kHex + "g}"), "not a file system's UUID"},
                    Row{nvme("options: noatime"), "has to be a list"},
                    Row{nvme("options: [rw]"), "'rw' contradicts 'access: read-only'"},
                    Row{nvme("access: exclusive, options: [ro]"), "'ro' contradicts 'access: exclusive'"},
                    Row{nvme("access: exclusive, options: [noload]"), "would write past a journal"},
                    Row{nvme("options: [loop=/dev/loop0]"), "another device than this volume's own"},
                    Row{nvme("options: ['noatime,rw']"), "one a list entry"},
                    Row{nvme("options: [x-systemd.automount]"), "in fstab only"},
                    Row{nvme("options: [remount]"), "another operation"},
                    Row{nvme("options: [[a]]"), "options: every entry"},
                    Row{volume("target: rose, subsystem: s, mount: mnt"), "'mnt' is not an absolute path"},
                    Row{volume("target: rose, subsystem: s, mount: /mnt/../v"), "write '/v'"},
                    Row{volume("target: rose, subsystem: s, mount: /mnt/v/"), "write '/mnt/v'"},
                    Row{volume("target: rose, subsystem: s, mount: //mnt"), "write '/mnt'"},
                    Row{volume("target: rose, subsystem: s, mount: /"), "root file system"},
                    Row{volume("target: rose, subsystem: s, mount: /dev/shm"), "belongs to the system"},
                    Row{volume("target: rose, mount: /mnt/v, subsystem: '" + std::string(224, 'n') + "'"),
                        "this has 224"},
                    Row{volume("target: rose, mount: /mnt/v, subsystem: 'a,b'"), "holds a comma"},
                    Row{volume("target: rose, mount: /mnt/v, subsystem: \"a\\nb\""),
                        "a control character: 'a\\x0ab'"},
                    Row{volume("target: rose, mount: /mnt/v, subsystem: ''"), "subsystem: is empty"}));

INSTANTIATE_TEST_SUITE_P(
    Outputs, InvalidConfig,
    testing::Values(
        Row{output("volume: v"), "outputs.run7.path: is missing"},
        Row{output("path: /out"), "outputs.run7.volume: is missing"},
        Row{output("path: out, volume: v"), "not an absolute path"},
        Row{output("path: /out, volume: w"), "there is no volume 'w'; did you mean"},
        Row{output("path: /out, volume: r"), "volume 'r' is read-only on this host"},
        Row{output("path: /mnt/v/out, volume: v"), "is on volume 'v'"},
        Row{output("path: /var/lib/spark-stage/cache/x, volume: v"), "overlaps the cache"},
        Row{output("path: /out, volume: v, complete: soon"),
            "'soon' is none of rename, dcp, hf, deepspeed and marker:NAME"},
        Row{output("path: /out, volume: v, complete: 'marker:a/b'"),
            "does not name a file of the checkpoint"},
        Row{output("path: /out, volume: v, keep: 0"), "outputs.run7.keep"},
        Row{output("path: /out, volume: v, nodes: 1"), "outputs.run7.nodes"},
        Row{output("path: /out, volume: v, namespaces: []"), "leave the key out if no pod is to write"},
        Row{output("path: /out, volume: v, nodes: 2"), "outputs.run7.nodes: is for an NFS volume"},
        Row{output("path: /out, volume: v, complete: dcp, nodes: 2"),
            "outputs.run7.nodes: needs `complete: rename`"},
        Row{output("path: /out, volume: v, to: ../x"), "by '..'"},
        Row{output("path: /out, volume: v}, run8: {path: /out/x, volume: v"),
            "outputs.run8: its folder is that of output 'run7'"},
        Row{output("path: /a, volume: v, to: x}, run8: {path: /b, volume: v, to: x"),
            "outputs.run8: its destination is"}));

INSTANTIATE_TEST_SUITE_P(
    CacheAndDataset, InvalidConfig,
    testing::Values(
        Row{"version: 1\ncache: {capacity: lots}\n", "or a part as in 5%"},
        Row{"version: 1\ncache: {keep_free: 101%}\n", "not a part from 0% to 100%"},
        Row{"version: 1\ncache: {scrub: 10s}\n", "cache.scrub: has to be whole seconds from 3600s"},
        Row{"version: 1\ncache: {scrub: never}\n", "or 'off'"},
        Row{"version: 1\ncache: {yield: 5}\n", "cache.yield"},
        Row{"version: 1\ncache: {page_cache: never}\n", "cache.page_cache"},
        Row{"version: 1\ncache: {threads: some}\n", "cache.threads: 'some' is neither 'auto' nor a number"},
        Row{"version: 1\ncache: {depth: 257}\n", "not a whole number from 1 to 256"},
        Row{"version: 1\ncache: {chunk: 1GiB}\n", "not from 64KiB to 8MiB"},
        Row{"version: 1\ncache: {capacity: 0}\n", "holds no dataset"},
        Row{"version: 1\ncache: {path: cache}\n", "not an absolute path"},
        Row{"version: 1\nvolumes: {n: {nfs: 'h:/x', mount: /mnt/n}}\ncache: {path: /mnt/n/cache}\n",
            "c.yaml:3:15: cache.path: /mnt/n/cache is on volume 'n'"},
        Row{"version: 1\nvolumes: {n: {nfs: 'h:/x', mount: /var/lib/spark-stage/cache}}\n",
            "cache.path: /var/lib/spark-stage/cache is on volume 'n'"},
        Row{"version: 1\nvolumes: {n: {nfs: 'h:/x', mount: /c/data}}\ncache: {path: /c}\n",
            "c.yaml:3:15: cache.path: volume 'n' is on /c/data, in a folder of the cache"},
        Row{"version: 1\nvolumes: {n: {nfs: 'h:/x', mount: /c/.trash/x}}\ncache: {path: /c}\n",
            "in a folder of the cache"},
        Row{dataset("volume: v"), "datasets.d.path: is missing"},
        Row{dataset("volume: w, path: x"), "there is no volume 'w'; did you mean 'v'?"},
        Row{dataset("volume: v, path: /x"), "is absolute"},
        Row{dataset("volume: v, path: a/../b"), "by '..'"}, Row{dataset("path: x"), "not an absolute path"},
        Row{dataset("path: /mnt/v/x"), "write volume: v, path: x"},
        Row{dataset("path: /var/lib/spark-stage"), "overlaps the cache"},
        Row{dataset("path: /x, env: 1X"), "not an environment variable's name"},
        Row{dataset("path: /x, env: SPARK_STAGE_Y"), "begins with SPARK_STAGE_"},
        Row{dataset("path: /x, namespaces: [Team]"), "is not the name of a Kubernetes namespace"},
        Row{dataset("path: /x, namespaces: [a, -b]"), "is not the name of a Kubernetes namespace"},
        Row{dataset("path: /x, namespaces: []"), "names no namespace"},
        Row{dataset("path: /x, namespaces: a"), "has to be a list"},
        Row{dataset("path: /x, exclude: '*.tmp'"), "exclude: has to be a list"},
        Row{dataset("path: /x, links: follow"), "links"},
        Row{dataset("path: /x, model: a b"), "c.yaml:4:33: datasets.d.model: 'a b' is not a model's name"},
        Row{dataset("path: /x, model: ../etc"), "is not a model's name"},
        Row{dataset("path: /x, model: a//b"), "is not a model's name"},
        Row{dataset("path: /x, model: ''"), "model"},
        Row{dataset("path: /x, model: a/b, revision: ../../x"), "is not a revision"},
        Row{dataset("path: /x, model: a/b, check: all"), "published"},
        Row{dataset("path: /x, model: a/b, env: HF_HOME"), "env: would take tokens"},
        Row{dataset("path: /x, model: a/b, include: []"), "include: names no file"},
        Row{dataset("path: /x, model: a/b, links: copy"), "links: is not for a model"},
        Row{dataset("path: /x, model: a/b, exclude: [x]"), "exclude: is not for a model"},
        Row{dataset("path: /x, model: a/b, expect: 'sha256:12'"), "is not sha256: and 64"},
        Row{dataset("source: peers"), "datasets.d.source: needs a section `fleet`"},
        Row{dataset("source: disk") + kFleet, "peers"},
        Row{dataset("source: peers, path: /x") + kFleet, "path: is not for `source: peers`"},
        Row{dataset("source: peers, model: a/b, include: [x]") + kFleet,
            "include: is not for `source: peers`"},
        Row{dataset("path: /x, adopt: true"), "adopt: needs a section `fleet`"},
        Row{dataset("volume: v, path: x, adopt: true") + kFleet, "adopt: is for a folder of this host"},
        Row{dataset("source: peers, adopt: true") + kFleet, "adopt: is not for `source: peers`"},
        Row{dataset("path: /x, revision: main"), "revision: is of a model; write its name too"},
        Row{dataset("path: /x, include: [x]"), "include: is of a model"},
        Row{"version: 1\ndatasets:\n  a-b: {path: /x}\n  a.b: {path: /y}\n",
            "c.yaml:4:3: datasets.a.b: `run` would give it the variable SPARK_STAGE_A_B"},
        Row{"version: 1\ndatasets: {'-x': {path: /x}}\n", "can't be the name of a dataset"}));

INSTANTIATE_TEST_SUITE_P(
    Metrics, InvalidConfig,
    testing::Values(Row{"version: 1\nmetrics: {listen: localhost:9464}\n",
                        "c.yaml:2:19: metrics.listen: 'localhost:9464' has no IP address to listen on"},
                    Row{"version: 1\nmetrics: {listen: 127.0.0.1}\n", "'127.0.0.1' has no port to listen on"},
                    Row{"version: 1\nmetrics: {listen: 9464}\n", "metrics.listen: '9464' is neither"},
                    Row{"version: 1\nmetrics: {port: 9464}\n", "unknown key 'port' in metrics"}));

// A cache folder may have others beside its own.
TEST(ConfigErrors, AVolumeBesideTheFoldersOfTheCacheIsNone) {
  EXPECT_TRUE(parse(
      "version: 1\nvolumes: {n: {nfs: 'h:/x', mount: /c/rosa}}\ncache: {path: /c, keep_free: 0}\n", "c"));
}

TEST(ConfigErrors, OneNamespaceIsNoTwoVolumesHoweverItsAddressIsWritten) {
  const std::string yaml =
      "version: 1\ntargets: {a: {address: 'fd00::1'}, b: {address: 'FD00:0::1'}, c: {address: 'fd00::2'}}\n"
      "volumes:\n  x: {target: a, subsystem: s, mount: /mnt/x}\n  y: {target: b, subsystem: s, mount: "
      "/mnt/y}\n"
      "  z: {target: c, subsystem: s, mount: /mnt/z}\n";
  EXPECT_THAT(problems_of(yaml), ElementsAre(HasSubstr("namespace 1 of s is volume 'x' already")));
}

TEST(ConfigErrors, NoTwoVolumesHaveOneRecordInTheStateFolder) {
  for (const std::string_view record : kVolumeRecords) {
    const std::string yaml = "version: 1\nvolumes: {d: {nfs: 'h:/a', mount: /a}, d" + std::string(record) +
                             ": {nfs: 'h:/b', mount: /b}}\n";
    EXPECT_THAT(problems_of(yaml), ElementsAre(HasSubstr("one of its files in the state folder"))) << record;
  }
}

TEST(ConfigErrors, TwoVolumesCannotShareOrNestMountPoints) {
  const std::string yaml =
      "version: 1\nvolumes:\n  a: {nfs: 'h:/a', mount: /mnt/x}\n  b: {nfs: 'h:/b', mount: /mnt/x}\n"
      "  c: {nfs: 'h:/c', mount: /mnt/x/c}\n  d: {nfs: 'h:/d', mount: /mnt/xy}\n";
  EXPECT_THAT(
      problems_of(yaml),
      ElementsAre(
          HasSubstr("c.yaml:4:27: volumes.b.mount: '/mnt/x' is the mount point of volume 'a' already"),
          HasSubstr("'/mnt/x/c' and '/mnt/x' of volume 'a'")));
}

TEST(ConfigErrors, TwoVolumesCannotShareARecord) {
  const std::string yaml =
      "version: 1\nvolumes:\n  a: {nfs: 'h:/a', mount: /mnt/a}\n  a.b: {nfs: 'h:/b', mount: /mnt/b}\n"
      "  a.held: {nfs: 'h:/c', mount: /mnt/c}\n";
  EXPECT_THAT(problems_of(yaml), ElementsAre(HasSubstr("c.yaml:5:3: volumes.a.held: one of its files in the "
                                                       "state folder would be volume 'a's as well")));
}

TEST(ConfigErrors, AllErrorsAreReportedInTheFilesOrder) {
  const std::string yaml =
      "datasets:\n  d: {volume: nowhere, path: ..}\nvolumes:\n  v:\n    target: t\n    mont: /mnt/v\n"
      "targets:\n  t:\n    port: 99999\nversion: one\n";
  EXPECT_THAT(problems_of(yaml),
              ElementsAre(HasSubstr("c.yaml:2:15: datasets.d.volume: there is no volume 'nowhere'"),
                          HasSubstr("c.yaml:2:30: datasets.d.path: '..' leads out"),
                          HasSubstr("c.yaml:4:3: volumes.v.subsystem: is missing"),
                          HasSubstr("c.yaml:4:3: volumes.v.mount: is missing"),
                          HasSubstr("c.yaml:6:5: unknown key 'mont' in volumes.v; did you mean 'mount'?"),
                          HasSubstr("c.yaml:8:3: targets.t.address: is missing"),
                          HasSubstr("c.yaml:9:11: targets.t.port: '99999' is not"),
                          HasSubstr("c.yaml:10:10: version: 'one' is not known")));
}

TEST(ConfigErrors, AHundredErrorsAreListedAndTheRestAreCounted) {
  std::string yaml = "version: 1\n";
  for (int i = 0; i < 150; ++i) yaml += "key" + std::to_string(i) + ": 1\n";
  const auto problems = problems_of(yaml);
  ASSERT_EQ(problems.size(), 101u);
  EXPECT_EQ(problems.back(), "c.yaml: and 50 more problems");
}

TEST(ConfigErrors, AnAliasBombIsRefusedBeforeItIsExpanded) {
  std::string yaml = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before + ", " + before + "]\n";
  }
  EXPECT_THAT(problems_of(yaml), ElementsAre(StartsWith("c.yaml:1:5: reading YAML: anchors (&x)")));
}

}  // namespace
}  // namespace spark::config
