// RAII wrappers of SQLite statements and transactions for the ledger. Included only if SQLite is available.
//
// All functions throw tenon::Error: data_loss for a damaged file, permission_denied, unavailable for other errors.
#pragma once

#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tenon/error.h"

namespace tenon::sqlite {

[[noreturn]] inline void fail(sqlite3* connection, std::string_view what) {
  const int code = connection != nullptr ? sqlite3_errcode(connection) & 0xff : SQLITE_NOMEM;
  const ErrorCode kind = code == SQLITE_CORRUPT || code == SQLITE_NOTADB  ? ErrorCode::data_loss
                         : code == SQLITE_PERM || code == SQLITE_READONLY ? ErrorCode::permission_denied
                                                                          : ErrorCode::unavailable;
  throw Error(kind, fmt::format("{}: {}", what, connection != nullptr ? sqlite3_errmsg(connection) : "out of memory"));
}

class Statement {
 public:
  Statement(sqlite3* connection, std::string_view sql) : connection_(connection) {
    if (sqlite3_prepare_v2(connection, sql.data(), static_cast<int>(sql.size()), &statement_, nullptr) != SQLITE_OK)
      fail(connection, "the ledger refused a statement");
  }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement() { sqlite3_finalize(statement_); }

  Statement& bind(int at, double value) { return check(sqlite3_bind_double(statement_, at, value)); }
  Statement& bind(int at, std::uint64_t value) {
    return check(sqlite3_bind_int64(statement_, at, static_cast<sqlite3_int64>(value)));
  }
  Statement& bind(int at, const std::string& text) {
    return check(sqlite3_bind_text(statement_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
  }
  Statement& bind(int at, const std::optional<double>& value) {
    return value ? bind(at, *value) : check(sqlite3_bind_null(statement_, at));
  }

  // Whether there is a row.
  bool step() {
    const int result = sqlite3_step(statement_);
    if (result != SQLITE_ROW && result != SQLITE_DONE) fail(connection_, "the ledger cannot be used");
    return result == SQLITE_ROW;
  }
  void run() {
    while (step()) {
    }
    sqlite3_reset(statement_);
  }

  bool is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  double number(int column) const { return sqlite3_column_double(statement_, column); }
  std::uint64_t count(int column) const { return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column)); }
  std::string text(int column) const {
    const unsigned char* value = sqlite3_column_text(statement_, column);
    return value != nullptr ? reinterpret_cast<const char*>(value) : "";
  }

 private:
  Statement& check(int result) {
    if (result != SQLITE_OK) fail(connection_, "the ledger refuses a value");
    return *this;
  }
  sqlite3* connection_;
  sqlite3_stmt* statement_ = nullptr;
};

inline void execute(sqlite3* connection, const char* sql) {
  if (sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) != SQLITE_OK) fail(connection, "the ledger cannot be used");
}

inline std::uint64_t ask(sqlite3* connection, const char* sql) {
  Statement statement(connection, sql);
  return statement.step() ? statement.count(0) : 0;
}

// Takes the write lock at the start, because a transaction that reads first and writes later can be refused permanently.
class Transaction {
 public:
  explicit Transaction(sqlite3* connection) : connection_(connection) { execute(connection_, "BEGIN IMMEDIATE"); }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (!is_done_) sqlite3_exec(connection_, "ROLLBACK", nullptr, nullptr, nullptr);
  }
  void commit() {
    execute(connection_, "COMMIT");
    is_done_ = true;
  }

 private:
  sqlite3* connection_;
  bool is_done_ = false;
};

}  // namespace tenon::sqlite
