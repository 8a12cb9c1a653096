"""A libdcgm that rejects some watches, over the fake library."""

from exporter.node.dcgm.native.library import DcgmLibrary


class RejectingLibrary(DcgmLibrary):
    """libdcgm whose engine rejects the watch of some fields, as the profiling module does.

    `status_of` gives the status of a watch from its fields and entities; 0 accepts it.
    """

    status_of = staticmethod(lambda fields, entities: 0)

    def __init__(self, path):
        self.groups, self.entities = {}, {}
        super().__init__(path)

    def status(self, function, *arguments):
        status = 0
        if function == "dcgmWatchFields":
            status = self.status_of(self.groups[arguments[2]], self.entities[arguments[1]])
        status = status or super().status(function, *arguments)
        if function == "dcgmFieldGroupCreate" and status == 0:
            self.groups[arguments[4]._obj.value] = tuple(arguments[2])
        if function == "dcgmGroupAddEntity" and status == 0:
            self.entities.setdefault(arguments[1], []).append(arguments[3])
        return status


def rejecting(status_of):
    """Loads such a library: what a source takes as `load`."""

    def load(path):
        library = RejectingLibrary(path)
        library.status_of = status_of
        return library

    return load
