"""The SQLite of this machine, for a check of our recipe where no Conan registry can be reached."""

from conan import ConanFile


class SystemSqlite(ConanFile):
    name = "sqlite3"
    version = "3.40.1"

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "SQLite3")
        self.cpp_info.set_property("cmake_target_name", "SQLite::SQLite3")
        self.cpp_info.set_property("cmake_find_mode", "both")
        self.cpp_info.includedirs, self.cpp_info.libdirs, self.cpp_info.bindirs = [], [], []
        self.cpp_info.system_libs = ["sqlite3"]
