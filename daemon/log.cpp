#include "daemon/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/json_log.hpp"
#include "daemon/systemd.hpp"

namespace spark::log {
namespace {

// sd-daemon(3): a line that begins with <N> has syslog priority N.
class JournalPriority final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm& /*time*/,
              spdlog::memory_buf_t& out) override {
    const char priority = message.level >= spdlog::level::err    ? '3'
                          : message.level == spdlog::level::warn ? '4'
                                                                 : '6';
    out.push_back('<');
    out.push_back(priority);
    out.push_back('>');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalPriority>();
  }
};

bool is_json = false;
std::function<void(std::string_view)> redirected;

// JSON lines contain the time; journald adds it itself.
const char* pattern() {
  if (is_json) return "%v";
  return std::getenv("JOURNAL_STREAM") != nullptr ? "%*%v" : "%Y-%m-%d %H:%M:%S.%e %l: %v";
}

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance = spdlog::default_logger();
  return instance;
}

void write(spdlog::level::level_enum level, std::string_view sentence,
           const std::vector<Field>& fields = {}) {
  if (redirected) return redirected(sentence);
  if (!is_json) return logger()->log(level, "{}", sentence);
  std::vector<std::pair<std::string, std::string>> named;
  for (const Field& field : fields) named.emplace_back(field.name, field.value);
  const auto name = spdlog::level::to_string_view(level);
  logger()->log(level, "{}",
                json_log_line(SystemClock().wall(), {name.data(), name.size()}, sentence, named));
}

}  // namespace

void start(Format format) {
  is_json = format == Format::Json;
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
  logger() = std::make_shared<spdlog::logger>("spark-staged", std::move(sink));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JournalPriority>('*');
  formatter->set_pattern(pattern());
  logger()->set_formatter(std::move(formatter));
  logger()->flush_on(spdlog::level::info);
}

void redirect(std::function<void(std::string_view)> told) {
  redirected = std::move(told);
}

void info(std::string_view sentence) {
  write(spdlog::level::info, sentence);
}
void warning(std::string_view sentence) {
  write(spdlog::level::warn, sentence);
}
void error(std::string_view sentence) {
  write(spdlog::level::err, sentence);
}

void event(bool is_trouble, const std::string& sentence, const std::vector<Field>& fields) {
  if (is_json || redirected)
    return write(is_trouble ? spdlog::level::warn : spdlog::level::info, sentence, fields);
  std::vector<std::string> lines = {"MESSAGE=" + sentence,
                                    std::string("PRIORITY=") + (is_trouble ? "4" : "6")};
  for (const Field& field : fields) {
    if (!field.value.empty()) lines.push_back(field.name + "=" + field.value);
  }
  if (send_to_journal(lines)) return;
  is_trouble ? warning(sentence) : info(sentence);
}

void survived(const Error& error) {
  warning(error.message() + "; continuing");
}

}  // namespace spark::log
