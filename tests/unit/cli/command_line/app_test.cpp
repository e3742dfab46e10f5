// The command line: help, usage errors, and the config verbs
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "cli/view/text.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

class CommandLine : public ::testing::Test {
 protected:
  std::string help(std::vector<std::string> verb) {
    Program asked;
    verb.push_back("--help");
    EXPECT_EQ(asked.run(verb), 0);
    return asked.output();
  }
  Program program;
};

TEST_F(CommandLine, HelpTeachesByExample) {
  const std::string text = help({});
  for (const std::string& line : split(text, '\n')) EXPECT_LE(display_width(line), 80u) << line;
  expect_golden("help.txt", text);
}

TEST_F(CommandLine, EveryVerbHasExamplesInEightyColumns) {
  App app;
  add_all_verbs(app);
  const auto verbs = app.verbs();
  EXPECT_NE(std::ranges::find(verbs, std::vector<std::string>{"bench", "report"}), verbs.end());
  std::string all;
  for (const auto& verb : verbs) {
    const std::string text = help(verb);
    EXPECT_NE(text.find("Examples:\n"), std::string::npos) << join(verb, " ");
    EXPECT_NE(text.find("spark-stage " + verb.front()), std::string::npos) << text;
    for (const std::string& line : split(text, '\n')) EXPECT_LE(display_width(line), 80u) << line;
    all += "$ spark-stage " + join(verb, " ") + " --help\n" + text + "\n";
  }
  expect_golden("help-verbs.txt", all);
}

TEST_F(CommandLine, EveryVerbThatReturnsDataHasItAsJson) {
  // Groups that do nothing on their own, text meant for a file or a person, and another program's output.
  const std::set<std::string> others{"bench report", "cache", "config", "fleet",  "fleet join",
                                     "fleet key",    "help",  "host",   "import", "run"};
  App app;
  add_all_verbs(app);
  for (const auto& verb : app.verbs()) {
    if (others.contains(join(verb, " "))) continue;
    EXPECT_NE(help(verb).find("--json"), std::string::npos) << join(verb, " ");
  }
}

TEST_F(CommandLine, KnowsItsVersion) {
  EXPECT_EQ(program.run({"--version"}), 0);
  EXPECT_EQ(program.output(), std::string("spark-stage ") + kVersion + "\n");
}

TEST_F(CommandLine, MistakesExitWithTwoAndASuggestion) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> mistakes = {
      {{"statsu"}, "there is no verb 'statsu' - did you mean 'status'?"},
      {{"statsu", "--json"}, "did you mean 'status'?"},
      {{"xyzzy"}, "see `spark-stage --help`"},
      {{"status", "--jsn"}, "there is no option '--jsn' of `spark-stage status` - did you mean '--json'?"},
      {{"ls", "extra"}, "`spark-stage ls` does not take 'extra'"},
      {{"stage"}, "DATASET"},
      {{"discover", "10.0.0.1", "--port", "70000"}, "--port"},
      {{"discover", "10.0.0.1", "--json", "--yaml"}, "--yaml"},
      {{"--socket"}, "--socket needs a value - --socket PATH"},
      {{"copy", "a", "b", "--io", "uring"},
       "`spark-stage copy`: --io: 'uring' is none of auto, io_uring, threads - did you mean 'io_uring'?"},
      {{"copy", "a", "b", "--threads", "999"}, "--threads: '999' is not a number from 1 to 256 - see"},
      {{"bench", "--scenario", "shard"}, "did you mean 'shards'?"},
      {{"discover", "a", "--port", "x"}, "--port: 'x' is not a number that it takes"},
      {{"ls", "--config", "a", "--config", "b"}, "--config is given twice - give it once"},
      {{"--config", "a", "ls", "--config", "b"}, "--config is given twice - give it once"},
      {{"--config", "a", "--config", "b", "ls"}, "--config is given twice - give it once"},
  };
  for (const auto& [arguments, sentence] : mistakes) {
    Program mistaken;
    EXPECT_EQ(mistaken.run(arguments), 2) << join(arguments, " ");
    EXPECT_NE(mistaken.errors().find(sentence), std::string::npos) << mistaken.errors();
    EXPECT_EQ(mistaken.output(), "");
  }
}

TEST_F(CommandLine, WithoutArgumentsItPrintsTheShortHelpAndExitsWithTwo) {
  EXPECT_EQ(program.run({}), 2);
  EXPECT_EQ(program.output(), "");
  EXPECT_TRUE(program.errors().starts_with("Usage: spark-stage [OPTIONS] VERB\n")) << program.errors();
  EXPECT_NE(program.errors().find("spark-stage help VERB"), std::string::npos) << program.errors();
  EXPECT_LE(split(program.errors(), '\n').size(), 15u);
}

TEST_F(CommandLine, TheHelpVerbPrintsTheSameAsTheOption) {
  for (const std::vector<std::string>& verb : {std::vector<std::string>{}, {"stage"}, {"volumes", "take"}}) {
    Program asked;
    std::vector<std::string> words = verb;
    words.insert(words.begin(), "help");
    EXPECT_EQ(asked.run(words), 0);
    EXPECT_EQ(asked.output(), help(verb));
  }
  EXPECT_EQ(program.run({"help", "volumes", "tkae"}), 2);
  EXPECT_NE(program.errors().find("there is no verb 'tkae' - did you mean 'take'?"), std::string::npos)
      << program.errors();
}

TEST_F(CommandLine, TheVersionVerbHasTheDaemonsVersionToo) {
  program.client.answer("GET /healthz", 200, "ok");
  program.client.server = "spark-staged/0.0.9";
  EXPECT_EQ(program.run({"version"}), 0);
  EXPECT_EQ(program.output(), std::string("spark-stage ") + kVersion + "\nspark-staged 0.0.9 is running\n");
  Program json;
  json.client.answer("GET /healthz", 200, "ok");
  json.client.server = "spark-staged/0.0.9";
  EXPECT_EQ(json.run({"version", "--json"}), 0);
  EXPECT_EQ(get_string(*parse_json_object(json.output()), "version"), kVersion);
  EXPECT_EQ(get_string(*parse_json_object(json.output()), "daemon"), "0.0.9");
}

TEST_F(CommandLine, TheVersionVerbWorksWithoutADaemon) {
  program.client.fail_once("GET /healthz", Error{Errc::Unavailable, "no daemon", ""});
  EXPECT_EQ(program.run({"version", "--json"}), 0);
  EXPECT_TRUE(parse_json_object(program.output())->at("daemon").is_null());
}

TEST_F(CommandLine, QuietLeavesOnlyErrorsOnStderr) {
  for (const bool quiet : {false, true}) {
    Program staging;
    staging.client.answer("POST /v1/stagings", 202, R"({"id": "7"})");
    std::vector<std::string> arguments{"stage", "imagenet", "--detach"};
    if (quiet) arguments.push_back("-q");
    EXPECT_EQ(staging.run(arguments), 0);
    EXPECT_EQ(staging.errors().empty(), quiet) << staging.errors();
    EXPECT_FALSE(staging.output().empty());
  }
  EXPECT_EQ(program.run({"-q", "ls"}), 3);
  EXPECT_NE(program.errors(), "");
}

TEST_F(CommandLine, VerboseShowsTheRequestsToTheDaemon) {
  program.client.answer("GET /v1/datasets", 200, R"({"datasets": []})");
  EXPECT_EQ(program.run({"ls", "--verbose"}), 0);
  EXPECT_EQ(program.errors(), "GET /v1/datasets: 200, 0 ms\n");
}

TEST_F(CommandLine, TheColorOptionOverridesTheTerminal) {
  for (const bool on_terminal : {false, true}) {
    for (const char* when : {"auto", "always", "never"}) {
      Program coloured;
      coloured.context.terminal.colour = on_terminal;
      coloured.client.answer("GET /v1/status", 200, R"({"volumes": [{"name": "a", "state": "ready"}]})");
      EXPECT_EQ(coloured.run({"status", "--color", when}), 0);
      const bool expected = std::string(when) == "always" || (on_terminal && std::string(when) == "auto");
      EXPECT_EQ(coloured.output().find('\x1b') != std::string::npos, expected) << when;
    }
  }
  EXPECT_EQ(program.run({"status", "--color", "often"}), 2);
}

TEST_F(CommandLine, ADatasetMayHaveAVerbsName) {
  program.client.answer("POST /v1/stagings", 202, R"({"id": "7"})");
  EXPECT_EQ(program.run({"stage", "--detach", "ls", "status"}), 0);
  EXPECT_EQ(program.client.sent.front(), R"(POST /v1/stagings {"datasets":["ls","status"]})");
}

TEST_F(CommandLine, TheSocketIsOptionThenVariableThenDefault) {
  std::string used;
  program.context.make_client = [&](const std::string& socket) -> std::unique_ptr<Client> {
    used = socket;
    return std::make_unique<FakeClient>(program.timer);
  };
  ::unsetenv("SPARK_STAGE_SOCKET");
  program.run({"ls"});
  EXPECT_EQ(used, "/run/spark-stage/api.sock");
  ::setenv("SPARK_STAGE_SOCKET", "/tmp/b.sock", 1);
  program.run({"ls"});
  EXPECT_EQ(used, "/tmp/b.sock");
  program.run({"--socket", "/tmp/a.sock", "ls"});
  EXPECT_EQ(used, "/tmp/a.sock");
  program.run({"ls", "--socket", "/tmp/c.sock"});
  EXPECT_EQ(used, "/tmp/c.sock");
  ::unsetenv("SPARK_STAGE_SOCKET");
}

class ConfigVerbs : public ::testing::Test {
 protected:
  void SetUp() override {
    file = std::filesystem::temp_directory_path() / ("spark-config-" + std::to_string(::getpid()));
  }
  void TearDown() override { std::filesystem::remove(file); }
  Program program;
  std::filesystem::path file;
};

TEST_F(ConfigVerbs, WithoutAFileExitWithTwo) {
  EXPECT_EQ(program.run({"--config", "/no/such.yaml", "config", "check"}), 2);
  EXPECT_NE(program.errors().find("/no/such.yaml"), std::string::npos) << program.errors();
}

TEST_F(ConfigVerbs, CheckCountsTargetsVolumesAndDatasets) {
  std::ofstream(file) << "version: 1\ntargets:\n  rose: {address: 192.168.0.100}\nvolumes:\n  datasets:\n"
                         "    target: rose\n    subsystem: raid5-data\n    mount: /mnt/a\n";
  EXPECT_EQ(program.run({"config", "check", file.string()}), 0) << program.errors();
  EXPECT_EQ(program.output(), file.string() + ": valid - 1 target, 1 volume, 0 datasets\n");
}

TEST_F(ConfigVerbs, CheckCountsForScripts) {
  std::ofstream(file) << "version: 1\ntargets:\n  rose: {address: 192.168.0.100}\n";
  EXPECT_EQ(program.run({"config", "check", file.string(), "--json"}), 0) << program.errors();
  const auto answer = parse_json_object(program.output());
  ASSERT_TRUE(answer) << program.output();
  EXPECT_EQ(get_int(*answer, "targets"), 1);
  EXPECT_EQ(get_int(*answer, "volumes"), 0);
}

TEST_F(ConfigVerbs, CheckNamesTheLine) {
  std::ofstream(file) << "version: 1\nvolumse: {}\n";
  EXPECT_EQ(program.run({"config", "check", file.string()}), 2);
  EXPECT_NE(program.errors().find(":2:1"), std::string::npos) << program.errors();
}

TEST_F(ConfigVerbs, ShowFillsInTheDefaults) {
  std::ofstream(file) << "version: 1\n";
  EXPECT_EQ(program.run({"config", "show", "--config", file.string()}), 0) << program.errors();
  EXPECT_NE(program.output().find("/var/lib/spark-stage/cache"), std::string::npos) << program.output();
  Program json;
  EXPECT_EQ(json.run({"--config", file.string(), "config", "show", "--json"}), 0);
  EXPECT_TRUE(parse_json(json.output()));
}

TEST_F(ConfigVerbs, ShowPrintsTheActiveConfigurationNotTheFile) {
  program.client.answer("GET /v1/config", 200, R"({"version": 1, "cache": {"path": "/in/force"}})");
  EXPECT_EQ(program.run({"config", "show"}), 0) << program.errors();
  EXPECT_NE(program.output().find("path: /in/force"), std::string::npos) << program.output();
}

constexpr char kPlan[] = R"json({"volumes": [
  {"name": "datasets", "action": "set live", "changes": ["controller_loss: never -> 30s", "fast_fail: off -> 5s"],
   "refused": null},
  {"name": "nas", "action": "nothing", "changes": [], "refused": null},
  {"name": "old-models", "action": "remove", "changes": [], "refused": "in use by python3 (pid 9, open file)"},
  {"name": "scratch", "action": "add", "changes": [], "refused": null}],
  "settings": ["cache.capacity: 1000 -> 2000"]})json";

TEST_F(ConfigVerbs, PlanShowsTheEffectOfAReloadOnEachVolume) {
  program.client.answer("POST /v1/plan", 200, kPlan);
  EXPECT_EQ(program.run({"config", "plan"}), 7) << program.errors();
  EXPECT_EQ(program.client.sent, std::vector<std::string>{"POST /v1/plan"});
  expect_golden("config-plan.txt", program.output());
}

TEST_F(ConfigVerbs, PlanWithoutRefusalsExitsWithZero) {
  program.client.answer("POST /v1/plan", 200, R"({"volumes": [{"name": "a", "action": "add", "changes": [],
    "refused": null}], "settings": []})");
  EXPECT_EQ(program.run({"config", "plan"}), 0) << program.errors();
  EXPECT_EQ(program.output(), "a  add\n");
}

TEST_F(ConfigVerbs, PlanOfAnotherFileSendsItsText) {
  std::ofstream(file) << "version: 1\n";
  program.client.answer("POST /v1/plan", 200, R"({"volumes": [], "settings": []})");
  EXPECT_EQ(program.run({"config", "plan", file.string()}), 0) << program.errors();
  ASSERT_EQ(program.client.sent.size(), 1U);
  EXPECT_NE(program.client.sent[0].find(R"("yaml":"version: 1\n")"), std::string::npos)
      << program.client.sent[0];
}

TEST_F(ConfigVerbs, PlanOfABadFileNamesTheLineAndSendsNoRequest) {
  std::ofstream(file) << "version: 1\nvolumse: {}\n";
  EXPECT_EQ(program.run({"config", "plan", file.string()}), 2);
  EXPECT_NE(program.errors().find(":2:1"), std::string::npos) << program.errors();
  EXPECT_TRUE(program.client.sent.empty());
}

}  // namespace
}  // namespace spark::cli
