#include "tests/unit/cli/fixture.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <regex>

#include "base/text.hpp"

namespace spark::cli {
namespace {

// Shares the test's client with the program under test, which owns its client.
class Borrowed final : public Client {
 public:
  explicit Borrowed(Client& client) : client_(client) {}
  Result<Answer> send(const Request& request) override { return client_.send(request); }
  Result<Answer> stream(const Request& request, const LineSink& sink, Duration silence) override {
    return client_.stream(request, sink, silence);
  }

 private:
  Client& client_;
};

Result<int> run_here(const std::vector<std::string>& command, const Environment& more,
                     const std::function<void()>& afterwards) {
  for (const auto& [name, value] : more) ::setenv(name.c_str(), value.c_str(), 1);
  auto status = run_in_foreground(command);
  if (afterwards) afterwards();
  return status;
}

}  // namespace

Result<Answer> FakeClient::send(const Request& request) {
  sent.push_back(request.method + " " + request.target + (request.body.empty() ? "" : " " + request.body));
  auto& answers = answers_[request.method + " " + request.target];
  if (answers.empty()) {
    return Answer{404, R"({"error": {"kind": "not_found", "what": "nothing at )" + request.target + R"("}})"};
  }
  Result<Answer> answer = answers.front();
  if (answers.size() > 1) answers.pop_front();
  if (answer) answer->server = server;
  return answer;
}

Result<Answer> FakeClient::stream(const Request& request, const LineSink& sink, Duration) {
  sent.push_back(request.method + " " + request.target);
  auto& streams = streams_[request.target];
  if (streams.empty()) return Answer{404, "{}"};
  const Stream stream = std::move(streams.front());
  streams.pop_front();
  for (const std::string& line : stream.lines) {
    timer_.sleep(stream.between);
    if (!sink(line)) return Answer{200, {}, server};
  }
  stream.afterwards();
  return fail(stream.end);
}

Program::Program()
    : context{out,
              err,
              in,
              Terminal{},
              [this] { return context.terminal; },
              timer,
              stop,
              [] {},
              [this](const std::string&) { return std::make_unique<Borrowed>(client); },
              [] { return nullptr; },
              [] { return nullptr; },
              nullptr,
              nullptr,
              [](const std::vector<std::string>& argv) -> Result<ChildOutput> {
                return fail(Errc::NotFound, argv.front() + " is not installed");
              },
              run_here,
              SystemRoot{"/nowhere"},
              false,
              {},
              {},
              {},
              {},
              nullptr} {}

int Program::run(std::vector<std::string> arguments) {
  App app;
  add_all_verbs(app);
  return app.run(context, std::move(arguments));
}

std::string golden_input(const std::string& name) {
  std::ifstream file(std::string(SPARK_GOLDEN_DIR) + "/" + name);
  EXPECT_TRUE(file) << "no golden file " << name << "; SPARK_UPDATE_GOLDEN=1 writes it";
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void expect_golden(const std::string& name, const std::string& text) {
  if (std::getenv("SPARK_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(std::string(SPARK_GOLDEN_DIR) + "/" + name) << text;
    return;
  }
  EXPECT_EQ(golden_input(name), text) << "golden file " << name;
}

std::string without_escapes(const std::string& text) {
  return std::regex_replace(text, std::regex("\x1b\\[[0-9;?]*[A-Za-z]"), "");
}

void expect_golden_screen(const std::string& name, const std::string& text, std::size_t columns) {
  for (const std::string& line : split(without_escapes(text), '\n'))
    EXPECT_LE(display_width(line), columns) << name << ": " << line;
  expect_golden(name, text);
}

}  // namespace spark::cli
