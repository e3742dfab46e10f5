#include "daemon/log.hpp"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <memory>
#include <string>

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
                          : message.level == spdlog::level::info ? '6'
                                                                 : '7';
    out.push_back('<');
    out.push_back(priority);
    out.push_back('>');
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<JournalPriority>();
  }
};

std::shared_ptr<spdlog::logger>& logger() {
  static std::shared_ptr<spdlog::logger> instance = spdlog::default_logger();
  return instance;
}

}  // namespace

void start() {
  auto sink = std::make_shared<spdlog::sinks::stderr_sink_st>();
  logger() = std::make_shared<spdlog::logger>("spark-staged", std::move(sink));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<JournalPriority>('*');
  formatter->set_pattern(std::getenv("JOURNAL_STREAM") != nullptr ? "%*%v" : "%Y-%m-%d %H:%M:%S.%e %l: %v");
  logger()->set_formatter(std::move(formatter));
  logger()->set_level(std::getenv("SPARK_STAGE_DEBUG") != nullptr ? spdlog::level::debug
                                                                  : spdlog::level::info);
  logger()->flush_on(spdlog::level::debug);
}

void debug(std::string_view sentence) {
  logger()->debug("{}", sentence);
}
void info(std::string_view sentence) {
  logger()->info("{}", sentence);
}
void warning(std::string_view sentence) {
  logger()->warn("{}", sentence);
}
void error(std::string_view sentence) {
  logger()->error("{}", sentence);
}

void event(bool is_trouble, const std::string& sentence, const std::vector<Field>& fields) {
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
