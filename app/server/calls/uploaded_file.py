"""`uploaded_file`: the uploaded file that a request names by its id."""

from pathlib import Path

from app.server.calls.retrieval import retrieval_service
from app.server.process.context import ServerContext
from app.server.retrieval.errors import NoSuchObject
from app.server.retrieval.records import UploadedFile
from app.server.wire.errors import bad_request


def uploaded_file(context: ServerContext, file_id: str, param: str) -> tuple[UploadedFile, Path]:
    """The file, and where its bytes are. It blocks.

    Args:
        context: the server.
        file_id: the id.
        param: the member of the request that has it.

    Raises:
        ApiError: 404, this server keeps no files; 400, there is no such file.
        RetrievalUnavailable: the files cannot be opened.
    """
    opened = retrieval_service(context).open()
    try:
        found = opened.catalogue.file(file_id)
    except NoSuchObject as error:
        raise bad_request(str(error), param=param, code="file_not_found") from error
    return found, Path(opened.folder.path(found))
