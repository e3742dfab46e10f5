#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "daemon/config/parse.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

constexpr char kHostNqn[] = "nqn.2014-08.org.nvmexpress:uuid:6f9619ff-8b86-4011-b42d-00c04fc964ff";
constexpr char kHostId[] = "6f9619ff-8b86-4011-b42d-00c04fc964ff";

class OneTarget final : public nvmetcp::NvmeGateway {
 public:
  explicit OneTarget(Result<nvmetcp::DiscoveryLog> log) : log_(std::move(log)) {}
  Result<nvmetcp::DiscoveryLog> discover(const nvmetcp::Portal&, const nvmetcp::HostIdentity&,
                                         const std::string&) override {
    return log_;
  }
  Result<nvmetcp::Connection> watch_discovery(const nvmetcp::Portal&, const nvmetcp::HostIdentity&,
                                              const std::string&) override {
    return fail(Errc::Unsupported, "not in this test");
  }
  Result<nvmetcp::DiscoveryLog> read_discovery(const std::string&) override {
    return fail(Errc::Unsupported, "not in this test");
  }
  Result<nvmetcp::Connection> connect(const std::string&, const nvmetcp::Portal&,
                                      const nvmetcp::HostIdentity&, const nvmetcp::ConnectOptions&) override {
    return fail(Errc::Unsupported, "not in this test");
  }
  Result<Change> disconnect(const std::string&, const std::string&, const nvmetcp::CutOff&) override {
    return fail(Errc::Unsupported, "not in this test");
  }

 private:
  Result<nvmetcp::DiscoveryLog> log_;
};

nvmetcp::OfferedSubsystem offer(const std::string& nqn, const std::string& address,
                                nvmetcp::SubsystemKind kind = nvmetcp::SubsystemKind::Io,
                                const std::string& transport = "tcp") {
  return {nqn, kind, transport, "ipv4", {address, 4420}};
}

class Discover : public ::testing::Test {
 protected:
  void SetUp() override {
    root = std::filesystem::temp_directory_path() / ("spark-discover-" + std::to_string(::getpid()));
    std::filesystem::create_directories(root / "etc/nvme");
    std::ofstream(root / "etc/nvme/hostnqn") << kHostNqn << "\n";
    std::ofstream(root / "etc/nvme/hostid") << kHostId << "\n";
    program.context.root = SystemRoot{root};
    program.context.is_root = true;
    log.generation = 4;
    log.entries = {
        offer("nqn.2014-08.org.nvmexpress.discovery", "192.168.0.100", nvmetcp::SubsystemKind::Discovery),
        offer("raid5-data", "192.168.0.100"), offer("nqn.2024-01.com.example:Tank/LLM Models", "10.0.0.7"),
        offer("fast", "192.168.0.100", nvmetcp::SubsystemKind::Io, "rdma")};
    log.ignored = {"entry 5 has an address that is not one: '::::'"};
  }
  void TearDown() override { std::filesystem::remove_all(root); }

  int discover(Result<nvmetcp::DiscoveryLog> answer, const std::vector<std::string>& options = {}) {
    program.context.make_gateway = [answer] { return std::make_unique<OneTarget>(answer); };
    std::vector<std::string> arguments = {"discover", "192.168.0.100"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return program.run(arguments);
  }

  Program program;
  std::filesystem::path root;
  nvmetcp::DiscoveryLog log;
};

TEST_F(Discover, ListsTheOfferedSubsystems) {
  EXPECT_EQ(discover(log), 0) << program.errors();
  expect_golden("discover.txt", program.output());
}

TEST_F(Discover, FitsItsTerminal) {
  program.context.terminal = {true, true, 60, false, false, 24};
  EXPECT_EQ(discover(log), 0) << program.errors();
  expect_golden("discover-narrow.txt", program.output());  // the host's NQN can't be wrapped
  EXPECT_NE(program.output().find("nqn.2024-…M Models"), std::string::npos);
}

TEST_F(Discover, WithoutSubsystemsNamesTheHostToAllow) {
  EXPECT_EQ(discover(nvmetcp::DiscoveryLog{}), 0);
  expect_golden("discover-empty.txt", program.output());
}

TEST_F(Discover, PrintsAValidConfiguration) {
  EXPECT_EQ(discover(log, {"--yaml"}), 0);
  expect_golden("discover.yaml", program.output());
  const auto parsed = config::parse(program.output(), "discover.yaml");
  ASSERT_TRUE(parsed) << parsed.error().message();
  ASSERT_EQ(parsed->volumes.size(), 2u);
  EXPECT_EQ(parsed->volumes[0].nvme->subsystem, "nqn.2024-01.com.example:Tank/LLM Models");
  EXPECT_EQ(parsed->volumes[0].mount, "/mnt/llm-models");
}

TEST_F(Discover, PrintsAValidConfigurationEvenWithoutSubsystems) {
  EXPECT_EQ(discover(nvmetcp::DiscoveryLog{}, {"--yaml"}), 0);
  expect_golden("discover-empty.yaml", program.output());
  EXPECT_TRUE(config::parse(program.output(), "discover.yaml"));
}

TEST_F(Discover, WritesTheConfigurationToANewFileOnly) {
  const std::string file = (root / "spark-stage.yaml").string();
  EXPECT_EQ(discover(fail(Errc::Unavailable, "connection refused"), {"--output", file}), 4);
  EXPECT_FALSE(std::filesystem::exists(file)) << "nothing is left of a discovery that failed";
  EXPECT_EQ(discover(log, {"--output", file}), 0) << program.errors();
  EXPECT_EQ(program.output(), "");
  ASSERT_TRUE(config::load(file));
  const std::string written = read_file(file).value();
  EXPECT_EQ(discover(nvmetcp::DiscoveryLog{}, {"--output", file}), 7);
  EXPECT_EQ(read_file(file).value(), written);
}

TEST_F(Discover, AsJson) {
  EXPECT_EQ(discover(log, {"--json"}), 0);
  const json::object answer = parse_json_object(program.output()).value();
  EXPECT_EQ(answer.at("entries").as_array().size(), 4u);
  EXPECT_EQ(answer.at("host").at("nqn"), kHostNqn);
}

TEST_F(Discover, PassesOnWhyTheTargetWasNotReached) {
  EXPECT_EQ(
      discover(fail(Errc::Unavailable, "connecting to 192.168.0.100:4420: connection refused", "is it on?")),
      4);
  EXPECT_EQ(program.errors(),
            "spark-stage: connecting to 192.168.0.100:4420: connection refused - is it on?\n");
}

TEST_F(Discover, NeedsRoot) {
  program.context.is_root = false;
  EXPECT_EQ(discover(log), 1);
  EXPECT_NE(program.errors().find("sudo spark-stage discover"), std::string::npos);
}

TEST_F(Discover, NeedsAHostIdentity) {
  std::filesystem::remove(root / "etc/nvme/hostnqn");
  EXPECT_NE(discover(log), 0);
  EXPECT_NE(program.errors().find("hostnqn"), std::string::npos) << program.errors();
}

}  // namespace
}  // namespace spark::cli
