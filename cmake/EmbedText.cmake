# cmake -DINPUT=file -DOUTPUT=file.cpp -DNAME=ns::variable -P EmbedText.cmake: a text file as a std::string_view.
file(READ ${INPUT} content)
string(REGEX REPLACE "^(.*)::([^:]*)$" "\\1;\\2" parts ${NAME})
list(GET parts 0 space)
list(GET parts 1 variable)
file(WRITE ${OUTPUT} "#include <string_view>\nnamespace ${space} {\nextern const std::string_view ${variable};\n\
const std::string_view ${variable} = R\"cxxi_text(${content})cxxi_text\";\n}\n")
