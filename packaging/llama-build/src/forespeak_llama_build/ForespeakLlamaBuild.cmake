# Read by CMake right after llama-cpp-python's own project() call, see pyproject.toml (CMAKE_ARGS).
#
# llama-cpp-python always compiles llama.cpp's `common` library and its HTTP stack, half of the whole build,
# and never loads them. It forces the switch on in the cache; a plain variable of that name wins over the cache.
set(LLAMA_BUILD_COMMON OFF)

# GCC before 14 drops the stores that fill AMX's tile configuration (its bug 114098), and the first batch of a quantised
# model then faults on server processors that have AMX. Where every processor gets a library of its own, the one for AMX
# asks for it after these flags, and has to be told again.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14
        AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 11 AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    string(APPEND CMAKE_C_FLAGS " -mno-amx-tile -mno-amx-int8 -mno-amx-bf16")
    string(APPEND CMAKE_CXX_FLAGS " -mno-amx-tile -mno-amx-int8 -mno-amx-bf16")
    function(forespeak_leave_amx_out)
        if(TARGET ggml-cpu-sapphirerapids)
            target_compile_options(ggml-cpu-sapphirerapids PRIVATE -mno-amx-tile -mno-amx-int8 -mno-amx-bf16)
        endif()
    endfunction()
    cmake_language(DEFER CALL forespeak_leave_amx_out)
endif()

# libllama is some 150 small files that each parse the same large headers: compiled in groups, the headers are
# parsed once per group. glm5-next.cpp repeats static helpers of deepseek4.cpp and has to stand alone.
function(forespeak_group_sources)
    set_source_files_properties(models/glm5-next.cpp TARGET_DIRECTORY llama PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    get_target_property(sources llama SOURCES)
    foreach(source IN LISTS sources)
        if(source MATCHES "\\.cpp$" AND NOT source MATCHES "models/")
            set_source_files_properties(${source} TARGET_DIRECTORY llama PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
        endif()
    endforeach()
    set_target_properties(llama PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 20)
endfunction()
cmake_language(DEFER CALL forespeak_group_sources)
